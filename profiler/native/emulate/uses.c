/* Which thread uses which page how often (profiler/native/page_uses): what the program's code does, in turns. */
#include "emulate.h"

#include <string.h>

static struct page_use nowhere; /* where what finds no room is counted */
static bool crowded;            /* a second thread has come */
enum { BEFORE = PAGE_USES_WHO - 1 }; /* the main thread, before the part; also backends/emulation/page_uses.py */

static struct page_use *take(void) { return em_spool_uses(); }

static void give(struct page_use *room) { em_spool_uses_end(room); }

static struct page_uses uses = {.take = take, .give = give};

static int64_t time_of(const struct em_thread *t) { return em_clock_of(t) + t->granted - t->budget; }

void em_uses_find(struct em_thread *t, struct em_recent_use *recent, uint64_t number) {
    struct page_use *found = NULL;
    if (likely(t->index < BEFORE)) found = page_uses_find(&uses, number, t->index, time_of(t));
    *recent = (struct em_recent_use){number + 1, found ? found : &nowhere};
}

void em_uses_before(uint64_t number, int64_t now) { page_uses_find(&uses, number, BEFORE, now); }

static void forget_recent(void) {
    for (uint32_t slot = 0; slot < em_thread_slots(); slot++)
        if (em_thread_at(slot)) memset(em_thread_at(slot)->uses, 0, sizeof em_thread_at(slot)->uses);
}

/* Asked now and then, with the books settled. What was before there were several threads is a stretch of its own. */
void em_uses_check(const struct em_thread *t) {
    int64_t now = em_clock_of(t);
    bool second = t->index && !crowded;
    if (likely(!second && !page_uses_due(&uses, now))) return;
    crowded |= second;
    if (uses.end == 0) return;
    forget_recent();
    page_uses_stretch(&uses, now);
}

/* Unmapped memory: what comes to be there is another's, and who uses it first is asked anew. */
void em_uses_forget(uint64_t start, uint64_t bytes) {
    uint64_t page = UINT64_C(1) << PAGE_SHIFT;
    if (bytes > UINT64_MAX - start - page) return;
    forget_recent();
    page_uses_forget(&uses, start >> PAGE_SHIFT, (start + bytes + page - 1) >> PAGE_SHIFT, em_threads_made());
}

/* In a forked child: the table is its parent's. */
void em_uses_forked(void) {
    uses = (struct page_uses){.take = take, .give = give};
    crowded = false;
}
