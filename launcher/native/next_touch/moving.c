/* Moving touched memory to the node of the thread that touches it. */
#include "next_touch.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20, MOVERS = 8 };

struct nt_counts nt_counts;

struct mover { /* what one thread needs to move a batch; signal stacks are small */
    _Atomic bool busy;
    struct nt_batch batch;
    int status[NT_BATCH];
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
static void split_huge_pages(const struct nt_batch *batch) {
    size_t page = page_bytes();
    for (uint32_t first = 0, next; first < batch->count; first = next) {
        uintptr_t start = (uintptr_t)batch->pages[first], end = start + page;
        for (next = first + 1; next < batch->count && (uintptr_t)batch->pages[next] == end; next++) end += page;
        if (start % HUGE_PAGE || end % HUGE_PAGE) madvise((void *)start, end - start, MADV_COLD);
    }
}

/* Asking first is cheap; a call that moves is not, even when nothing is to be moved. */
static void move_batch(struct mover *mover) {
    struct nt_batch *batch = &mover->batch;
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

static void move_at_once(const struct nt_piece *piece) {
    struct mover *mover = take_mover();
    size_t page = page_bytes();
    for (uintptr_t at = piece->start; at < piece->end;) {
        for (mover->batch.count = 0; at < piece->end && mover->batch.count < NT_BATCH; at += page)
            nt_batch_add(&mover->batch, at, piece->node);
        move_batch(mover);
    }
    give_mover(mover);
}

/* No signal may come: its handler could touch marked memory, and wait for a mover that is ours. */
static void move_waiting(void) {
    struct mover *mover = take_mover();
    nt_take_lock();
    nt_take_queue(&mover->batch);
    nt_release_lock();
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
    if (!nt_queue_filled()) return;
    int saved = errno;
    unsigned long blocked = nt_block_signals();
    move_waiting();
    nt_restore_signals(blocked);
    errno = saved;
}

void nt_release(uintptr_t start, uintptr_t end) {
    if (nt_unmark(start, end)) nt_flush();
}

void nt_movers_forked(void) {
    for (unsigned i = 0; i < MOVERS; i++) atomic_store(&movers[i].busy, false);
    nt_queue_forked();
}
