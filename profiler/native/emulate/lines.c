/* Who takes which line from whom (profiler/native/transfers): what the program's code does. */
#include "emulate.h"

int64_t transfers_now(void) { return em_clock_of(em_self); }

void transfers_write(uint64_t first, uint64_t second) { em_spool_transfers(first, second); }

void *transfers_room(size_t bytes) { return em_spool_table(bytes); }

/* An access that its L1 does not answer. */
enum transfer em_transfer(struct em_thread *t, uint64_t line, bool store) {
    uint64_t number = line >> (PAGE_SHIFT - LINE_SHIFT);
    struct em_shared_recent *recent = &t->shared[reach_recent_slot(line)];
    if (unlikely(recent->number != number + 1)) {
        recent->page = transfers_page(caches_page(&t->core, line)->index);
        recent->number = recent->page ? number + 1 : 0;
        if (!recent->page) return TRANSFER_NONE;
    }
    return transfers_access(recent->page, number, (uint32_t)line % PAGE_LINES, t->index, store);
}
