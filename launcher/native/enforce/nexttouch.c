/* Moving what is touched to who touches it, and marking it (next-touch.txt, 3.1). */
#include "nexttouch.h"

#define NUMAPLAN_BUILDING
#include "../include/numaplan.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };
enum { STACK_NEAR = 4096, STACK_FAR = 1 << 30 };
enum { BATCH = 512, MOVERS = 8, PIECES = 1024, VMAS = 512, NODES = 1024 };
#ifndef MPOL_F_NUMA_BALANCING
#define MPOL_F_NUMA_BALANCING (1 << 13)
#endif

struct nt_counts nt_counts;

struct mover { /* what one thread needs to move a batch; signal stacks are small */
    _Atomic bool busy;
    uint32_t count;
    void *pages[BATCH];
    int status[BATCH], nodes[BATCH];
};
static struct mover movers[MOVERS];

static struct mover *take_mover(void) {
    for (unsigned turn = 0;; turn++) {
        struct mover *mover = &movers[turn % MOVERS];
        if (!atomic_exchange_explicit(&mover->busy, true, memory_order_acquire)) return mover;
        if (turn % MOVERS == MOVERS - 1) sched_yield();
    }
}

static long move_pages(struct mover *mover, const int *nodes) {
    return syscall(SYS_move_pages, 0, mover->count, mover->pages, nodes, mover->status, MPOL_MF_MOVE);
}

/* Of a huge page the kernel moves all, whatever part was touched, unless it is split before: it does so for a part that is
 * called cold, and that has no other effect worth mention.
 */
static void split_huge_pages(const struct mover *mover) {
    uintptr_t first = (uintptr_t)mover->pages[0], last = (uintptr_t)mover->pages[mover->count - 1];
    if (first % HUGE_PAGE == 0 && mover->count == BATCH) return;
    madvise((void *)first, last - first + (size_t)sysconf(_SC_PAGESIZE), MADV_COLD);
}

/* Asking first is cheap; a call that moves begins by emptying the lists of all cpus, even when nothing is to be moved. */
static void move_batch(struct mover *mover, int node) {
    memset(mover->status, 0xff, sizeof mover->status);
    if (!mover->count || move_pages(mover, NULL)) return;
    uint32_t elsewhere = 0;
    for (uint32_t i = 0; i < mover->count; i++)
        if (mover->status[i] >= 0 && mover->status[i] != node) mover->pages[elsewhere++] = mover->pages[i];
    if (!(mover->count = elsewhere)) return;
    split_huge_pages(mover);
    for (uint32_t i = 0; i < elsewhere; i++) mover->nodes[i] = node, mover->status[i] = -EAGAIN;
    move_pages(mover, mover->nodes);
    uint32_t moved = 0;
    for (uint32_t i = 0; i < elsewhere; i++) moved += mover->status[i] == node;
    atomic_fetch_add_explicit(&nt_counts.moved, moved, memory_order_relaxed);
    atomic_fetch_add_explicit(&nt_counts.stayed, elsewhere - moved, memory_order_relaxed);
}

static void move_here(uintptr_t start, uintptr_t end) {
    unsigned cpu, node;
    if (syscall(SYS_getcpu, &cpu, &node, NULL)) return;
    struct mover *mover = take_mover();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (uintptr_t at = start; at < end;) {
        for (mover->count = 0; at < end && mover->count < BATCH; at += page) mover->pages[mover->count++] = (void *)at;
        move_batch(mover, (int)node);
    }
    atomic_store_explicit(&mover->busy, false, memory_order_release);
}

/* Accessible first: the kernel does not move pages of a mapping that may not be accessed, and loses no write to one that
 * it moves. No signal between: its handler could come here, and wait for a mover that is ours.
 */
bool nt_resolve(uintptr_t address) {
    static const unsigned long all = ~0ul;
    unsigned long saved;
    struct nt_piece piece;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &saved, sizeof all);
    bool ours = nt_open(address, &piece);
    if (ours) {
        move_here(piece.start, piece.end);
        atomic_fetch_add_explicit(&nt_counts.touches, 1, memory_order_relaxed);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved, NULL, sizeof saved);
    return ours;
}

void nt_touch(const void *address, size_t bytes) {
    uintptr_t at = (uintptr_t)address, end;
    if (__builtin_add_overflow(at, bytes, &end)) return;
    int saved = errno;
    while ((at = nt_next(at, end)) < end) nt_resolve(at);
    errno = saved;
}

/* ---- marking ---- */

static unsigned long memory_nodes[NODES / (8 * sizeof(unsigned long))]; /* allowed ones */

static unsigned count_nodes(void) {
    unsigned count = 0;
    if (syscall(SYS_get_mempolicy, NULL, memory_nodes, NODES, NULL, MPOL_F_MEMS_ALLOWED)) return 0;
    for (size_t i = 0; i < sizeof memory_nodes / sizeof *memory_nodes; i++)
        count += (unsigned)__builtin_popcountl(memory_nodes[i]);
    return count;
}

static size_t granule_for(size_t bytes, size_t wanted) {
    size_t granule = (size_t)sysconf(_SC_PAGESIZE);
    while (wanted ? granule < wanted : granule * PIECES < bytes) granule *= 2;
    return granule;
}

static _Atomic bool marking;

void nt_movers_forked(void) {
    for (unsigned i = 0; i < MOVERS; i++) atomic_store(&movers[i].busy, false);
    atomic_store(&marking, false);
}

/* The caller's stack may be of one mapping with what lies beside it. Its descriptor is at the top. */
static bool holds_own_stack(uintptr_t start, uintptr_t end) {
    stack_t other;
    uintptr_t low = (uintptr_t)__builtin_frame_address(0) - STACK_NEAR;
    uintptr_t high = ((uintptr_t)pthread_self() + STACK_NEAR) & ~(uintptr_t)(STACK_NEAR - 1);
    if (high < low || high - low > STACK_FAR) high = low + 2 * STACK_NEAR;
    if (start < high && low < end) return true;
    if (sigaltstack(NULL, &other) || other.ss_flags & SS_DISABLE) return false;
    return start < (uintptr_t)other.ss_sp + other.ss_size && (uintptr_t)other.ss_sp < end;
}

static int mark_vmas(uintptr_t start, uintptr_t end, size_t granule) {
    static struct nt_vma vmas[VMAS]; /* the marker's */
    int error = EINVAL; /* until something could be marked */
    while (atomic_exchange_explicit(&marking, true, memory_order_acquire)) sched_yield();
    for (size_t count = VMAS; count == VMAS && start < end;) {
        sigset_t saved;
        nt_lock(&saved);
        count = nt_vmas(start, end, vmas, VMAS);
        nt_unlock(&saved);
        for (size_t i = 0; i < count && error != ENOMEM; i++) {
            const struct nt_vma *vma = &vmas[i];
            uintptr_t low = start > vma->start ? start : vma->start, high = end < vma->end ? end : vma->end;
            start = high;
            if (!vma->markable || holds_own_stack(low, high)) continue;
            int failed = nt_mark(low, high, granule, vma->protection);
            if (!failed) atomic_fetch_add_explicit(&nt_counts.marked, high - low, memory_order_relaxed);
            error = failed ? failed : 0;
        }
        if (!count || error == ENOMEM) break;
    }
    atomic_store_explicit(&marking, false, memory_order_release);
    return error;
}

/* The kernel's own way: hint faults, on all nodes; what was bound before is so no more. */
static int let_kernel_balance(uintptr_t start, uintptr_t end) {
    return syscall(SYS_mbind, start, end - start, MPOL_BIND | MPOL_F_NUMA_BALANCING, memory_nodes, NODES + 1, 0) ? errno : 0;
}

static int how_asked(int how) {
    const char *wish = getenv("NUMAPLAN_NEXT_TOUCH");
    if (!wish || how != NUMAPLAN_AUTO) return how;
    return !strcmp(wish, "user") ? NUMAPLAN_USER : !strcmp(wish, "kernel") ? NUMAPLAN_KERNEL : NUMAPLAN_AUTO;
}

int nt_mark_memory(uintptr_t address, size_t bytes, size_t granule, int how) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = address & ~(page - 1), end;
    if (__builtin_add_overflow(address, bytes + (page - 1), &end) || bytes + page < bytes) return EINVAL;
    if (granule & (granule - 1)) return EINVAL;
    end &= ~(page - 1);
    if (!bytes) return 0;
    unsigned nodes = count_nodes();
    how = how_asked(how);
    if (how == NUMAPLAN_AUTO && nodes < 2) return 0;
    if (how == NUMAPLAN_KERNEL) return let_kernel_balance(start, end);
    if (!nt_catch_faults()) return how == NUMAPLAN_USER ? ENOSYS : let_kernel_balance(start, end);
    int error = mark_vmas(start, end, granule_for(end - start, granule));
    return error && how == NUMAPLAN_AUTO && !let_kernel_balance(start, end) ? 0 : error;
}

/* ---- what programs call; launcher/native/include/numaplan.h ---- */

static int as_errno(int error) {
    if (error) errno = error;
    return error ? -1 : 0;
}

__attribute__((visibility("default"))) int numaplan_mark_next_touch(void *address, size_t bytes, size_t granule, int how);
__attribute__((visibility("default"))) int numaplan_clear_next_touch(void *address, size_t bytes);
__attribute__((visibility("default"))) void numaplan_next_touch_counts(uint64_t counts[4]);

int numaplan_mark_next_touch(void *address, size_t bytes, size_t granule, int how) {
    if (how < NUMAPLAN_AUTO || how > NUMAPLAN_KERNEL) return as_errno(EINVAL);
    int saved = errno, error = nt_mark_memory((uintptr_t)address, bytes, granule, how);
    errno = saved;
    return as_errno(error);
}

int numaplan_clear_next_touch(void *address, size_t bytes) {
    uintptr_t start = (uintptr_t)address, end;
    if (__builtin_add_overflow(start, bytes, &end)) return as_errno(EINVAL);
    if (nt_any()) nt_release(start, end);
    return 0;
}

/* Bytes marked, pieces touched, pages moved, pages that could not be moved. */
void numaplan_next_touch_counts(uint64_t counts[4]) {
    counts[0] = atomic_load(&nt_counts.marked);
    counts[1] = atomic_load(&nt_counts.touches);
    counts[2] = atomic_load(&nt_counts.moved);
    counts[3] = atomic_load(&nt_counts.stayed);
}
