/* Who takes which line from whom (profiler/native/transfers): what the program's code does, and what the
 * kernel copies for it (buffers.c). */
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

void em_lines_copied(struct em_thread *t, uint64_t start, uint64_t end, bool store) {
    for (uint64_t line = start >> LINE_SHIFT; line <= (end - 1) >> LINE_SHIFT; line++) {
        caches_copy(&t->core, line, store);
        caches_lock();
        reach_copy(&t->reach, line, store);
        struct shared_page *page = em_options.transfers ? transfers_page(caches_page(&t->core, line)->index) : NULL;
        uint32_t within = (uint32_t)line % PAGE_LINES;
        if (page && store) transfers_written(page, within, t->index);
        else if (page) transfers_access(page, line >> (PAGE_SHIFT - LINE_SHIFT), within, t->index, false);
        caches_unlock();
    }
}
