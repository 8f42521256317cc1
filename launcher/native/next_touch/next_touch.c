/* Marking memory, and the functions that programs call for it ([NEXT-TOUCH], 3.1). */
#include "next_touch.h"

#define NUMAPLAN_BUILDING
#include "../include/numaplan.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_NEAR = 4096, STACK_FAR = 1 << 30 };
enum { PIECES = 1024, VMAS = 512, NODES = 1024 };
#ifndef MPOL_F_NUMA_BALANCING
#define MPOL_F_NUMA_BALANCING (1 << 13)
#endif

void nt_touch(const void *address, size_t bytes) {
    uintptr_t at = (uintptr_t)address, end;
    if (__builtin_add_overflow(at, bytes, &end)) return;
    int saved = errno;
    unsigned long blocked = nt_block_signals();
    while ((at = nt_next(at, end)) < end) nt_resolve(at);
    nt_restore_signals(blocked);
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
        unsigned long blocked = nt_lock();
        count = nt_vmas(start, end, vmas, VMAS);
        nt_unlock(blocked);
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
    const int mode = MPOL_BIND | MPOL_F_NUMA_BALANCING;
    return syscall(SYS_mbind, start, end - start, mode, memory_nodes, NODES + 1, 0) ? errno : 0;
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
    if (nt_retired()) return EPERM;
    unsigned nodes = count_nodes();
    how = how_asked(how);
    if (how == NUMAPLAN_AUTO && nodes < 2) return 0;
    if (how == NUMAPLAN_KERNEL) return let_kernel_balance(start, end);
    if (!nt_catch_faults()) return how == NUMAPLAN_USER ? ENOSYS : let_kernel_balance(start, end);
    int error = mark_vmas(start, end, granule_for(end - start, granule));
    return error && how == NUMAPLAN_AUTO && !let_kernel_balance(start, end) ? 0 : error;
}

/* ---- forks ---- */

static unsigned long at_fork; /* signals that were blocked; the lock's */

static void before_fork(void) { at_fork = nt_lock(); }

static void after_fork(void) { nt_unlock(at_fork); }

static void in_child(void) {
    nt_movers_forked();
    atomic_store(&marking, false);
    after_fork();
}

/* From the start, so that no fork can come while another thread holds the lock. */
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }

/* ---- what programs call; launcher/native/include/numaplan.h ---- */

static int as_errno(int error) {
    if (error) errno = error;
    return error ? -1 : 0;
}

__attribute__((visibility("default"))) int numaplan_mark_next_touch(void *address, size_t bytes, size_t granule,
                                                                    int how);
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
    nt_flush(); /* what was touched has its place */
    if (nt_any()) nt_release(start, end);
    return 0;
}

/* Bytes marked, pieces touched, pages moved, pages that could not be moved. */
void numaplan_next_touch_counts(uint64_t counts[4]) {
    nt_flush();
    counts[0] = atomic_load(&nt_counts.marked);
    counts[1] = atomic_load(&nt_counts.touches);
    counts[2] = atomic_load(&nt_counts.moved);
    counts[3] = atomic_load(&nt_counts.stayed);
}
