/* Touched pages that wait to be moved.
 *
 * A call of move_pages first empties the lists of all cpus, which takes as long as moving many pages. Touched pages, already
 * accessible, therefore wait for others: one for each SHARE that were moved, so that few are ever not yet where they belong,
 * and none once everything marked was touched.
 */
#include "next_touch.h"

#include <string.h>
#include <unistd.h>

enum { SHARE = 64 };

static struct nt_batch waiting;
static _Atomic uint32_t waiting_pages; /* waiting.count, for a look without the lock */
static uint64_t taken;                 /* pages that no longer wait, since the last mark */

static void tell_waiting(void) { atomic_store_explicit(&waiting_pages, waiting.count, memory_order_relaxed); }

bool nt_queue_filled(void) { return atomic_load_explicit(&waiting_pages, memory_order_relaxed) != 0; }

void nt_batch_add(struct nt_batch *batch, uintptr_t page, int node) {
    batch->pages[batch->count] = (void *)page;
    batch->nodes[batch->count++] = node;
}

void nt_enqueue(struct nt_piece *piece) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (piece->end - piece->start) / page;
    piece->waits = pages <= NT_BATCH / 2 && pages <= NT_BATCH - waiting.count;
    if (!piece->waits) return;
    for (uintptr_t at = piece->start; at < piece->end; at += page) nt_batch_add(&waiting, at, piece->node);
    piece->due |= waiting.count >= NT_BATCH / 2 || waiting.count > taken / SHARE;
    tell_waiting();
}

void nt_dequeue(uintptr_t start, uintptr_t end) {
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

void nt_reset_batching(void) { taken = 0; }

void nt_take_queue(struct nt_batch *to) {
    to->count = waiting.count;
    memcpy(to->pages, waiting.pages, to->count * sizeof *to->pages);
    memcpy(to->nodes, waiting.nodes, to->count * sizeof *to->nodes);
    taken += to->count;
    waiting.count = 0;
    tell_waiting();
}

/* The parent moves them. */
void nt_queue_forked(void) {
    waiting.count = 0;
    tell_waiting();
}
