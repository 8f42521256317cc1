/* The kernel's memory policies, as far as it has them: raw system calls, since libnuma is not everywhere. */
#include "enforce.h"
#include "next_touch.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORD = 8 * sizeof(unsigned long), MASK_WORDS = (PT_MAX_NODE + 1) / WORD };
enum { WEIGHTED_INTERLEAVE = 6 /* Linux 6.9 */, SPARE = 32 /* a node keeps this part of its memory */, NODES = 64 };
enum { STACK_PAGES = 80, PAGES_BELOW = 16, MUCH_STORAGE = 1 << 18, PIECES = 256 };
enum { ENOUGH = 64 /* huge pages to be shared out whole */ };
#define HUGE_PAGE ((uintptr_t)2 << 20)
#define FRESH_NS 100000000ull

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* The kernel moves a huge page as a whole, also what is not ours of it. */
static void split_at_borders(uintptr_t start, uintptr_t end) {
    uintptr_t first = (start + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1), last = end & ~(HUGE_PAGE - 1);
    if (start < first) nt_split_huge_pages(start, first < end ? first : end);
    if (last < end && last >= first) nt_split_huge_pages(last, end);
}

static int set_policy(uintptr_t start, uintptr_t end, int mode, const unsigned long *mask, unsigned how) {
    if (how & NF_MOVE) split_at_borders(start, end);
    unsigned long bits = mask ? PT_MAX_NODE + 2 : 0; /* the kernel takes one off */
    return syscall(SYS_mbind, start, end - start, mode, mask, bits, how & NF_MOVE ? MPOL_MF_MOVE : 0) ? errno : 0;
}

static size_t read_file(const char *path, char *text, size_t room) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, room - 1);
    if (file >= 0) close(file);
    text[got > 0 ? got : 0] = 0;
    return got > 0 ? (size_t)got : 0;
}

static uint64_t field(const char *text, const char *name) {
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

/* What a node can take: what is free, and files that give way; UINT64_MAX: it does not say. */
static uint64_t room_on(uint32_t node) {
    char path[64], text[2048];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo", node);
    if (!read_file(path, text, sizeof text)) return UINT64_MAX;
    uint64_t room = field(text, "MemFree:") + field(text, "Inactive(file):"), spare = field(text, "MemTotal:") / SPARE;
    return room > spare ? room - spare : 0;
}

static _Atomic bool was_full[NODES]; /* room for what was to be bound */

bool nf_lacks_room(uint32_t node) { return node < NODES && (atomic_load(&was_full[node]) || room_on(node) == 0); }

/* A program bound to a full node is killed; one that prefers the node gets memory elsewhere. */
static bool has_room(uint32_t node, size_t bytes) {
    static struct {
        _Atomic uint64_t seen_ns, room;
    } known[NODES];
    if (node >= NODES) return true;
    if (np_now() - atomic_load(&known[node].seen_ns) > FRESH_NS) {
        atomic_store(&known[node].room, room_on(node));
        atomic_store(&known[node].seen_ns, np_now());
    }
    uint64_t left = atomic_load(&known[node].room);
    while (bytes <= left)
        if (atomic_compare_exchange_weak(&known[node].room, &left, left - bytes)) return true;
    atomic_store(&was_full[node], true);
    return false;
}

int nf_set_node(uintptr_t start, uintptr_t end, uint32_t node, unsigned how) {
    if (start >= end) return 0;
    unsigned long mask[MASK_WORDS] = {0};
    mask[node / WORD] = 1ul << node % WORD;
    int mode = how & NF_STRICT && has_room(node, end - start) ? MPOL_BIND : MPOL_PREFERRED;
    int error = set_policy(start, end, mode, mask, how);
    if (error != EINVAL) return error;
    /* Huge pages of a pool are not cut. */
    start = (start + HUGE_PAGE / 2) & ~(HUGE_PAGE - 1), end = (end + HUGE_PAGE / 2) & ~(HUGE_PAGE - 1);
    return start < end ? set_policy(start, end, mode, mask, how) : error;
}

void nf_reset_policy(uintptr_t start, uintptr_t end) {
    if (start < end) set_policy(start, end, MPOL_DEFAULT, NULL, 0);
}

/* ---- what the kernel moves ---- */

static bool kept; /* by this process's policy, which is ours */

/* AutoNUMA hints and moves only what no policy is for: one that says what happens anyway, the thread's own node, keeps
 * pages where the plan, or a bound thread, has put them. The program's own wish comes first.
 */
void nf_may_balance(bool may) {
    if (may && kept) pt_change_policy(MPOL_LOCAL, MPOL_DEFAULT);
    kept = !may && (kept || pt_change_policy(MPOL_DEFAULT, MPOL_LOCAL));
}

void nf_balance_after_exec(bool may) {
    if (kept) pt_change_policy(may ? MPOL_LOCAL : MPOL_DEFAULT, may ? MPOL_DEFAULT : MPOL_LOCAL);
}

uintptr_t nf_border(uintptr_t address, size_t bytes, uint32_t runs) {
    if (runs && bytes / runs >= 32 * HUGE_PAGE) return (address + HUGE_PAGE / 2) & ~(HUGE_PAGE - 1);
    return (address + page_bytes() - 1) & ~(uintptr_t)(page_bytes() - 1);
}

/* ---- interleaving ---- */

static uint64_t system_weight(uint32_t node) {
    char path[80], text[32];
    snprintf(path, sizeof path, "/sys/kernel/mm/mempolicy/weighted_interleave/node%u", node);
    return read_file(path, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

/* Weights are the system's, and only its owner sets them: of use where they are the plan's, within an eighth. */
static bool system_agrees(const struct pt_run *runs, uint32_t count, uint64_t total) {
    uint64_t weights = 0;
    for (uint32_t i = 0; i < count; i++) weights += system_weight(runs[i].node);
    for (uint32_t i = 0; weights && i < count; i++) {
        double ours = (double)runs[i].bytes / (double)total,
               its = (double)system_weight(runs[i].node) / (double)weights;
        if (its < ours * 7 / 8 || its > ours * 9 / 8) return false;
    }
    return weights != 0;
}

/* Pieces in turn, each to the node that is furthest behind its share. Where there are enough of them, huge pages are not cut. */
static int place_by_share(uintptr_t start, uintptr_t end, const struct pt_run *runs, uint32_t count, uint64_t total,
                          unsigned how) {
    uint64_t given[NODES] = {0};
    size_t unit = end - start < ENOUGH * HUGE_PAGE ? page_bytes() : HUGE_PAGE;
    size_t units = (end - start) / unit, pieces = units < PIECES ? units : PIECES;
    int first_error = 0;
    for (size_t piece = 0; piece < pieces; piece++) {
        uintptr_t from = piece ? (start + units * piece / pieces * unit) & ~(unit - 1) : start;
        uintptr_t to = piece + 1 < pieces ? (start + units * (piece + 1) / pieces * unit) & ~(unit - 1) : end;
        uint32_t next = 0;
        double most = -1e30;
        for (uint32_t i = 0; i < count; i++) {
            double behind = (double)runs[i].bytes / (double)total * (double)(piece + 1) - (double)given[i];
            if (behind > most) most = behind, next = i;
        }
        given[next]++;
        int error = nf_set_node(from, to, runs[next].node, how & NF_MOVE);
        if (error && !first_error) first_error = error;
    }
    return first_error;
}

int nf_interleave(uintptr_t start, uintptr_t end, const struct pt_run *runs, uint32_t count, unsigned how) {
    unsigned long mask[MASK_WORDS] = {0};
    uint64_t total = 0, least = UINT64_MAX, most = 0;
    if (!count || start >= end) return 0;
    for (uint32_t i = 0; i < count; i++) {
        mask[runs[i].node / WORD] |= 1ul << runs[i].node % WORD;
        total += runs[i].bytes;
        if (runs[i].bytes < least) least = runs[i].bytes;
        if (runs[i].bytes > most) most = runs[i].bytes;
    }
    if (most - least <= total / 64 + page_bytes() || count > NODES)
        return set_policy(start, end, MPOL_INTERLEAVE, mask, how);
    if (system_agrees(runs, count, total) && !set_policy(start, end, WEIGHTED_INTERLEAVE, mask, how)) return 0;
    return place_by_share(start, end, runs, count, total, how);
}

/* ---- stacks ---- */

struct few_pages { /* to be moved at once; those beyond stay, and so do those that are another process's, too */
    void *pages[STACK_PAGES];
    size_t count;
};

static void add_pages(struct few_pages *few, uintptr_t start, uintptr_t end) {
    size_t page = page_bytes();
    for (uintptr_t at = start & ~(uintptr_t)(page - 1); at < end && few->count < STACK_PAGES; at += page)
        few->pages[few->count++] = (void *)at;
}

static void move_few(struct few_pages *few, int node) {
    int nodes[STACK_PAGES], status[STACK_PAGES];
    for (size_t i = 0; i < few->count; i++) nodes[i] = node;
    if (few->count) syscall(SYS_move_pages, 0, few->count, few->pages, nodes, status, MPOL_MF_MOVE);
}

/* Of the main thread: what was put there before it was on its node; later pages come to be there. What ran before in a
 * forked child (we did) was deeper in the stack than this, where its program goes next. Above what pthreads call the
 * stack lie the texts of the command line and the environment, the program's own path last.
 */
void nf_move_stack(uintptr_t top, int node) {
    uintptr_t last = (uintptr_t)getauxval(AT_EXECFN), here = (uintptr_t)__builtin_frame_address(0);
    struct few_pages few = {.count = 0};
    add_pages(&few, here - PAGES_BELOW * page_bytes(), last > top ? last : top);
    move_few(&few, node);
}

/* Of the main thread: what it has for itself, and its descriptor, which have been written to: by the loader, or in a
 * forked child before it was bound. Programs look there in each function that guards its stack.
 */
void nf_move_storage(int node) {
    uintptr_t descriptor = (uintptr_t)pthread_self();
    struct few_pages few = {.count = 0};
    add_pages(&few, descriptor - page_bytes(), descriptor + page_bytes());
    move_few(&few, node);
}

static bool is_present(uintptr_t address) {
    void *page = (void *)address;
    int status = -1;
    return !syscall(SYS_move_pages, 0, 1, &page, NULL, &status, 0) && status >= 0;
}

/* Of another thread, which runs on it. Its creator has made what the thread has for itself. Most use little of that:
 * OpenBLAS alone has 60 KiB for each, which cost more to move than to leave. Much of it is there to be used. With the
 * descriptor the kernel may have made all of a huge page; that is split, so that later pages come to be here.
 */
void nf_place_stack(uintptr_t address, size_t bytes, int node) {
    size_t page = page_bytes();
    uintptr_t start = address & ~(uintptr_t)(page - 1), end = (address + bytes) & ~(uintptr_t)(page - 1);
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), descriptor = (uintptr_t)pthread_self();
    uintptr_t first = here & ~(HUGE_PAGE - 1), last = first + HUGE_PAGE, below = here - PAGES_BELOW * page;
    bool huge = first >= start && is_present(first), much = !huge && end > here + MUCH_STORAGE;
    nf_set_node(start, end, (uint32_t)node, much ? NF_MOVE : 0);
    if (huge) nt_split_huge_pages(first + page, last < end ? last : end);
    if (much) return;
    /* Stacks may be small, with those of other threads below and above. */
    struct few_pages few = {.count = 0};
    add_pages(&few, below > start ? below : start, here + page < end ? here + page : end);
    add_pages(&few, descriptor - page > start ? descriptor - page : start,
              descriptor + page < end ? descriptor + page : end);
    move_few(&few, node);
}
