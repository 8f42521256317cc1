/* Who takes which line from whom (profiler/native/transfers): what the program's code does, and what the
 * kernel copies for it (buffers.c). */
#include "emulate.h"

int64_t transfers_now(void) { return em_clock_of(em_self); }

void transfers_write(uint64_t first, uint64_t second) { em_spool_transfers(first, second); }

void *transfers_room(size_t bytes) { return em_spool_table(bytes); }

static struct shared_page *shared_page(struct em_thread *t, uint64_t line) {
    uint64_t number = line >> (PAGE_SHIFT - LINE_SHIFT);
    struct em_shared_recent *recent = &t->shared[reach_recent_slot(line)];
    if (unlikely(recent->number != number + 1)) {
        recent->page = transfers_page(caches_page(&t->core, line)->index);
        recent->number = recent->page ? number + 1 : 0;
    }
    return recent->page;
}

void em_transfer(struct em_thread *t, uint64_t line, bool store) {
    struct shared_page *page = shared_page(t, line);
    if (!page) return;
    uint64_t number = line >> (PAGE_SHIFT - LINE_SHIFT);
    bool asks = transfers_access(page, number, (uint32_t)line % PAGE_LINES, t->index, store);
    t->record.shared_hits += asks && t->core.kept;
}

static void line_copied(struct em_thread *t, uint64_t line, bool store) {
    reach_copied(&t->reach, &t->core, line, store);
    if (!em_options.transfers) return;
    caches_lock();
    if (store) {
        struct shared_page *page = shared_page(t, line);
        if (page) transfers_written(page, (uint32_t)line % PAGE_LINES, t->index);
    } else {
        em_transfer(t, line, false);
    }
    caches_unlock();
}

/* Memory that nobody has touched is read as zeros that have no place. */
void em_lines_copied(struct em_thread *t, uint64_t start, uint64_t end, bool store) {
    uint64_t line = start >> LINE_SHIFT, last = (end - 1) >> LINE_SHIFT, before = t->record.caches.coherence;
    while (line <= last) {
        uint64_t of_page = line | (PAGE_LINES - 1);
        if (store || em_pages_placed(line >> (PAGE_SHIFT - LINE_SHIFT)))
            for (uint64_t one = line; one <= of_page && one <= last; one++) line_copied(t, one, store);
        line = of_page + 1;
    }
    t->turn_taken += t->record.caches.coherence - before; /* without accesses, of which turns are made (turns.c) */
}
