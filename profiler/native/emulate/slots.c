/* Slots: the private caches of one thread, taken over by another after its end. */
#include "emulate.h"

#include <string.h>

static struct em_thread *by_slot[MAX_THREADS];
static uint32_t slots;
static unsigned living;

struct em_thread *em_thread_at(uint32_t slot) { return __atomic_load_n(&by_slot[slot], __ATOMIC_ACQUIRE); }

/* One more than the highest slot that was ever in use. */
uint32_t em_thread_slots(void) { return __atomic_load_n(&slots, __ATOMIC_ACQUIRE); }

/* Whether another thread may be on its way to its next access. */
bool em_threads_alone(void) { return __atomic_load_n(&living, __ATOMIC_RELAXED) < 2; }

/* Lowest slot without a living thread. */
uint32_t em_slot_free(void) {
    uint32_t slot = 0;
    while (slot < MAX_THREADS - 1 && by_slot[slot] && !by_slot[slot]->ended) slot++;
    return slot;
}

void em_slot_take(struct em_thread *t) {
    __atomic_store_n(&by_slot[t->core.slot], t, __ATOMIC_RELEASE);
    if (t->core.slot >= slots) __atomic_store_n(&slots, t->core.slot + 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&living, 1, __ATOMIC_RELAXED);
}

void em_slot_leave(struct em_thread *t) {
    t->ended = true;
    __atomic_fetch_sub(&living, 1, __ATOMIC_RELAXED);
}

/* In a forked child: none of the parent's threads is there. */
void em_slots_forked(void) {
    memset(by_slot, 0, slots * sizeof *by_slot);
    slots = 0;
    living = 0;
}

/* Pages may get other homes. */
void em_slots_forget_pages(void) {
    for (uint32_t slot = 0; slot < em_thread_slots(); slot++)
        if (em_thread_at(slot)) reach_forget(&em_thread_at(slot)->reach);
}
