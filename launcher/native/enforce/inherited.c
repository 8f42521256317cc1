/* What a forked child shares with its parent: pages that either would copy when it writes to them, and that are on the parent's
 * node as long as both only read. A child that lives on another node gets copies of its own there, of small mappings: that
 * is where code of every kind keeps what it reads all the time, while of large ones a child may need but a part.
 */
#include "enforce.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
enum { MOST_BYTES = 8 << 20, OF_A_MAPPING = 2 << 20, BATCH = MOST_BYTES / 4096, HUGE_PAGE = 2 << 20 };

struct child {
    int node;
    size_t page, left; /* bytes that may yet be copied */
    size_t count; /* of `copied` */
};

static void *copied[BATCH];
static int nodes[BATCH], found[BATCH];

/* Of a pool its pages are not for us to take: they may all be the parent's. */
static bool may_copy(const struct np_mapping *mapping) {
    int mode = -1;
    bool pool = !mapping->anonymous && mapping->start % HUGE_PAGE == 0 && mapping->end % HUGE_PAGE == 0;
    if (!mapping->readable || !mapping->writable || mapping->shared || pool) return false;
    if (mapping->end - mapping->start > OF_A_MAPPING) return false;
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0, mapping->start, MPOL_F_ADDR)) return false;
    return mode == MPOL_DEFAULT || mode == MPOL_LOCAL; /* copies would not be here otherwise */
}

/* The kernel copies, as if all were written to: no signal handler or thread can come between. */
static bool copy(struct child *child, uintptr_t start, uintptr_t end) {
    if (end - start > child->left || madvise((void *)start, end - start, MADV_POPULATE_WRITE)) return false;
    child->left -= end - start;
    for (; start < end; start += child->page) nodes[child->count] = child->node, copied[child->count++] = (void *)start;
    return true;
}

/* Pages that are there, on other nodes. */
static bool copy_pages(struct child *child, uintptr_t start, uintptr_t end) {
    static void *pages[BATCH];
    static int status[BATCH];
    size_t count = 0;
    bool good = true;
    for (uintptr_t at = start; at < end && count < BATCH; at += child->page) pages[count++] = (void *)at;
    if (syscall(SYS_move_pages, 0, count, pages, NULL, status, 0)) return false;
    for (size_t first = 0, last; first < count && good; first = last + 1) {
        for (last = first; last < count && status[last] >= 0 && status[last] != child->node;) last++;
        if (last > first) good = copy(child, start + first * child->page, start + last * child->page);
    }
    return good;
}

static bool see(const struct np_mapping *mapping, void *context) {
    return !may_copy(mapping) || copy_pages(context, mapping->start, mapping->end);
}

void nf_own_inherited(int node) {
    struct child child = {.node = node, .page = (size_t)sysconf(_SC_PAGESIZE), .left = MOST_BYTES};
    unsigned cpu, here;
    if (getcpu(&cpu, &here) || (int)here != node || nf_lacks_room((uint32_t)node)) return;
    np_maps(see, &child);
    /* Where the parent was faster it has the copy, and what it left is the child's alone. */
    if (child.count) syscall(SYS_move_pages, 0, child.count, copied, nodes, found, MPOL_MF_MOVE);
}
