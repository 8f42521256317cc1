/* Moving what is touched to who touches it (next-touch.txt, 3.1).
 *
 * A call of move_pages first empties the lists of all cpus, which takes as long as moving many pages. Touched pages, already
 * accessible, therefore wait for others: one for each WAITING that were moved, so that few are ever not yet where they belong,
 * and none once everything marked was touched.
 */
#include "nexttouch.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20, BATCH = 512, MOVERS = 8, WAITING = 64 };

struct nt_counts nt_counts;

struct batch { /* nodes: where pages belong */
    uint32_t count;
    void *pages[BATCH];
    int nodes[BATCH];
};

struct mover { /* what one thread needs to move a batch; signal stacks are small */
    _Atomic bool busy;
    struct batch batch;
    int status[BATCH];
};
static struct mover movers[MOVERS];

static struct mover *take_mover(void) {
    for (unsigned turn = 0;; turn++) {
        struct mover *mover = &movers[turn % MOVERS];
        if (!atomic_exchange_explicit(&mover->busy, true, memory_order_acquire)) return mover;
        if (turn % MOVERS == MOVERS - 1) sched_yield();
    }
}

static void give_mover(struct mover *mover) { atomic_store_explicit(&mover->busy, false, memory_order_release); }

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static long move_pages(struct mover *mover, const int *nodes) {
    return syscall(SYS_move_pages, 0, mover->batch.count, mover->batch.pages, nodes, mover->status, MPOL_MF_MOVE);
}

/* Of a huge page the kernel moves all, whatever part was touched, unless it is split before: it does so for a part that is
 * called cold, and that has no other effect worth mention.
 */
static void split_huge_pages(const struct batch *batch) {
    size_t page = page_bytes();
    for (uint32_t first = 0, next; first < batch->count; first = next) {
        uintptr_t start = (uintptr_t)batch->pages[first], end = start + page;
        for (next = first + 1; next < batch->count && (uintptr_t)batch->pages[next] == end; next++) end += page;
        if (start % HUGE_PAGE || end % HUGE_PAGE) madvise((void *)start, end - start, MADV_COLD);
    }
}

/* Asking first is cheap; a call that moves is not, even when nothing is to be moved. */
static void move_batch(struct mover *mover) {
    struct batch *batch = &mover->batch;
    for (uint32_t i = 0; i < batch->count; i++) mover->status[i] = -EAGAIN;
    if (!batch->count || move_pages(mover, NULL)) return;
    uint32_t elsewhere = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        if (mover->status[i] < 0 || mover->status[i] == batch->nodes[i]) continue;
        batch->pages[elsewhere] = batch->pages[i];
        batch->nodes[elsewhere++] = batch->nodes[i];
    }
    if (!(batch->count = elsewhere)) return;
    split_huge_pages(batch);
    for (uint32_t i = 0; i < elsewhere; i++) mover->status[i] = -EAGAIN;
    move_pages(mover, batch->nodes);
    uint32_t moved = 0;
    for (uint32_t i = 0; i < elsewhere; i++) moved += mover->status[i] == batch->nodes[i];
    atomic_fetch_add_explicit(&nt_counts.moved, moved, memory_order_relaxed);
    atomic_fetch_add_explicit(&nt_counts.stayed, elsewhere - moved, memory_order_relaxed);
}

static void add(struct batch *batch, uintptr_t page, int node) {
    batch->pages[batch->count] = (void *)page;
    batch->nodes[batch->count++] = node;
}

static void move_at_once(const struct nt_piece *piece) {
    struct mover *mover = take_mover();
    size_t page = page_bytes();
    for (uintptr_t at = piece->start; at < piece->end;) {
        for (mover->batch.count = 0; at < piece->end && mover->batch.count < BATCH; at += page)
            add(&mover->batch, at, piece->node);
        move_batch(mover);
    }
    give_mover(mover);
}

/* ---- pages that wait; the lock of the marks is held ---- */

static struct batch waiting;
static _Atomic uint32_t waiting_pages; /* waiting.count, for a look without the lock */
static uint64_t taken;                 /* pages that no longer wait, since the last mark */

static void tell_waiting(void) { atomic_store_explicit(&waiting_pages, waiting.count, memory_order_relaxed); }

void nt_await(struct nt_piece *piece) {
    size_t page = page_bytes(), pages = (piece->end - piece->start) / page;
    piece->waits = pages <= BATCH / 2 && pages <= BATCH - waiting.count;
    if (!piece->waits) return;
    for (uintptr_t at = piece->start; at < piece->end; at += page) add(&waiting, at, piece->node);
    piece->due |= waiting.count >= BATCH / 2 || waiting.count > taken / WAITING;
    tell_waiting();
}

void nt_forget(uintptr_t start, uintptr_t end) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < waiting.count; i++) {
        uintptr_t page = (uintptr_t)waiting.pages[i];
        if (page >= start && page < end) continue;
        waiting.pages[kept] = waiting.pages[i];
        waiting.nodes[kept++] = waiting.nodes[i];
    }
    waiting.count = kept;
    tell_waiting();
}

void nt_start_anew(void) { taken = 0; }

/* ---- the lock is not held ---- */

/* No signal may come: its handler could touch marked memory, and wait for a mover that is ours. */
static void move_waiting(void) {
    struct mover *mover = take_mover();
    nt_take_lock();
    uint32_t count = mover->batch.count = waiting.count;
    memcpy(mover->batch.pages, waiting.pages, count * sizeof *waiting.pages);
    memcpy(mover->batch.nodes, waiting.nodes, count * sizeof *waiting.nodes);
    taken += count;
    waiting.count = 0;
    tell_waiting();
    nt_give_lock();
    move_batch(mover);
    give_mover(mover);
}

bool nt_resolve(uintptr_t address) {
    unsigned cpu, node;
    struct nt_piece piece = {.node = getcpu(&cpu, &node) ? -1 : (int)node};
    if (!nt_open(address, &piece)) return false;
    atomic_fetch_add_explicit(&nt_counts.touches, 1, memory_order_relaxed);
    if (!piece.waits) move_at_once(&piece);
    if (piece.due) move_waiting();
    return true;
}

void nt_flush(void) {
    static const unsigned long all = ~0ul;
    unsigned long saved;
    if (!atomic_load_explicit(&waiting_pages, memory_order_relaxed)) return;
    int error = errno;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &saved, sizeof all);
    move_waiting();
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved, NULL, sizeof saved);
    errno = error;
}

void nt_movers_forked(void) {
    for (unsigned i = 0; i < MOVERS; i++) atomic_store(&movers[i].busy, false);
    waiting.count = 0; /* the parent moves them */
    tell_waiting();
}
