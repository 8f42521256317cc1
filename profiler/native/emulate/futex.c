/* Who sleeps and who wakes whom: how many threads a futex call or an ending thread will wake.
 *
 * A thread that is woken gets in line on its own; the draw of turns must wait for it (turns.c). The waker learns how
 * many it woke when its call returns, by when some of them may be in line already: those are not waited for.
 */
#include "emulate.h"

#include <linux/futex.h>
#include <string.h>

#define PROMISES 64

static int32_t futex_lock;
static struct { /* woken threads that are yet to come, by what they slept on */
    uint64_t address;
    int32_t threads;
} promises[PROMISES];

static void lock(void) {
    while (__atomic_exchange_n(&futex_lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(void) { __atomic_store_n(&futex_lock, 0, __ATOMIC_RELEASE); }

void em_futex_forked(void) {
    futex_lock = 0;
    memset(promises, 0, sizeof promises);
}

/* Whether the call may sleep; what it sleeps on, or wakes, is noted. */
bool em_futex_asked(struct em_thread *t, uint64_t address, int64_t operation, uint32_t value) {
    int command = (int)operation & FUTEX_CMD_MASK;
    bool wakes = command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET || command == FUTEX_WAKE_OP ||
                 command == FUTEX_REQUEUE || command == FUTEX_CMP_REQUEUE;
    bool waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
    lock();
    t->futex_state = wakes ? FUTEX_WAKING : waits ? FUTEX_ASLEEP : FUTEX_NONE;
    t->futex = address;
    t->futex_value = value;
    unlock();
    return !wakes;
}

/* Where an address's promises are kept; with `make` also a free place. NULL if there is none. */
static int32_t *promised(uint64_t address, bool make) {
    int32_t *found = NULL;
    for (size_t i = 0; i < PROMISES; i++) {
        if (promises[i].threads > 0 && promises[i].address == address) return &promises[i].threads;
        if (make && found == NULL && promises[i].threads == 0) {
            promises[i].address = address;
            found = &promises[i].threads;
        }
    }
    return found;
}

/* Up to `most` threads that sleep on an address are on their way. */
static void promise(uint64_t address, int64_t most) {
    int32_t asleep = 0;
    for (uint32_t slot = 0; slot < em_thread_slots(); slot++) {
        struct em_thread *t = em_thread_at(slot);
        if (t == NULL || t->ended || t->futex != address) continue;
        if (t->futex_state == FUTEX_CAME && most > 0) {
            t->futex_state = FUTEX_NONE;
            most--;
        }
        asleep += t->futex_state == FUTEX_ASLEEP;
    }
    int32_t coming = most < asleep ? (int32_t)most : asleep, *place = promised(address, true);
    if (place != NULL && coming > 0) {
        *place += coming;
        em_turns_await(coming);
    }
}

/* A thread that makes no further access wakes those that wait for its end: they sleep on a word that holds its id. */
void em_futex_ends(const struct em_thread *t) {
    lock();
    for (uint32_t slot = 0; slot < em_thread_slots(); slot++) {
        const struct em_thread *other = em_thread_at(slot);
        if (other && !other->ended && other->futex_state == FUTEX_ASLEEP && other->futex_value == t->record.tid)
            promise(other->futex, 1);
    }
    unlock();
}

/* The call is back: whom it woke will come; or the thread was woken itself. */
void em_futex_answered(struct em_thread *t, int64_t result) {
    lock();
    if (t->futex_state == FUTEX_WAKING && result > 0) promise(t->futex, result);
    bool woken = t->futex_state == FUTEX_ASLEEP && result == 0;
    t->futex_state = FUTEX_NONE;
    int32_t *place = woken ? promised(t->futex, false) : NULL;
    if (place != NULL) {
        --*place;
        t->to_come = true;
    } else if (woken) {
        t->futex_state = FUTEX_CAME;
    }
    unlock();
}
