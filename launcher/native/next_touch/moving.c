/* Moving touched memory to the node of the thread that touches it. */
#include "next_touch.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20, MOVERS = 8, TRIES = 10 };

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

/* Those that were not when their first part was touched. */
static void split_huge_pages(const struct nt_batch *batch) {
    size_t page = page_bytes();
    for (uint32_t first = 0, next; first < batch->count; first = next) {
        uintptr_t start = (uintptr_t)batch->pages[first], end = start + page;
        for (next = first + 1; next < batch->count && (uintptr_t)batch->pages[next] == end; next++) end += page;
        if (start % HUGE_PAGE || end % HUGE_PAGE) nt_split_huge_pages(start, end);
    }
}

static bool is_elsewhere(int status, int node) { return status >= 0 && status != node; }

/* The kernel has it in its hands, to make room for huge pages for example, or has left those that come after such a one. */
static bool is_busy(int status, int node) {
    (void)node;
    return status == -EBUSY || status == -ENOENT || status == -EAGAIN;
}

/* What the kernel has not told of those in the batch, it is busy with. Returns how many are where they belong. */
static uint32_t keep(struct mover *mover, const int *nodes, bool (*kept)(int status, int node)) {
    struct nt_batch *batch = &mover->batch;
    uint32_t count = batch->count, right = 0;
    for (uint32_t i = 0; i < count; i++) mover->status[i] = -EAGAIN;
    move_pages(mover, nodes);
    batch->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        right += mover->status[i] == batch->nodes[i];
        if (kept(mover->status[i], batch->nodes[i])) nt_batch_add(batch, (uintptr_t)batch->pages[i], batch->nodes[i]);
    }
    return right;
}

/* Asking first is cheap; a call that moves is not, even when nothing is to be moved. */
static void move_batch(struct mover *mover) {
    struct nt_batch *batch = &mover->batch;
    if (batch->count) keep(mover, NULL, is_elsewhere);
    uint32_t elsewhere = batch->count, moved = 0;
    split_huge_pages(batch);
    for (unsigned tries = 0; batch->count && tries < TRIES; tries++) moved += keep(mover, batch->nodes, is_busy);
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
