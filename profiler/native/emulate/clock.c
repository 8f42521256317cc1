/* The recording's clock, and where it meets the host's.
 *
 * Under the fair schedule time is counted, not measured: a nanosecond an access, in the one order that turns give
 * all accesses. So a busy host does not show, and a program that does the same twice is recorded the same twice.
 *
 * What the preload library logs bears the host's time. It asks for that by a system call, whose answer is in the
 * guest's memory when the call returns: it is kept with our time of that moment, and Python translates by it. Where
 * it cannot be read, both ends of the call are kept.
 */
#include "emulate.h"

#include <time.h>
#include <unistd.h>

static int32_t clock_lock;
static int64_t last_time; /* of the last turn's end */

int64_t em_host_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t em_clock_last(void) { return __atomic_load_n(&last_time, __ATOMIC_RELAXED); }

/* It does not go back; where it was. */
static int64_t go_on_to(int64_t now) {
    int64_t last = em_clock_last();
    while (last < now &&
           !__atomic_compare_exchange_n(&last_time, &last, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return last;
}

static void lock(void) {
    while (__atomic_exchange_n(&clock_lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(void) { __atomic_store_n(&clock_lock, 0, __ATOMIC_RELEASE); }

/* A turn ends. */
void em_clock_advance(int64_t now) {
    go_on_to(now);
    em_spool_time(em_clock_last());
}

/* This program replaces another one, whose clock it goes on with. */
void em_clock_begin(void) {
    struct em_process_header before;
    if (!em_options.fair || !em_spool_latest(getpid(), &before) || before.ends != EM_END_EXEC) return;
    go_on_to(before.last_ns);
    em_spool_same_clock(&before);
}

/* A child was waited for: what comes now comes after all that it did, if it went by the same clock. */
void em_clock_waited(int64_t child) {
    struct em_process_header ended;
    if (!em_spool_latest(child, &ended) || !em_spool_is_same_clock(&ended)) return;
    lock();
    int64_t before = go_on_to(ended.last_ns), now = em_host_ns();
    if (before < ended.last_ns) {
        em_spool_clock(now, before);
        em_spool_clock(now, ended.last_ns);
    }
    unlock();
}

/* The time of a thread's last access, or of the last that any made before it got a turn. */
int64_t em_clock_of(const struct em_thread *t) {
    if (!em_options.fair) return em_host_ns();
    return t->turn_base ? t->turn_base + t->position : em_clock_last();
}

/* In a forked child: whoever held it is not there. */
void em_clock_forked(void) { clock_lock = 0; }

/* A thread with its books settled asks for the time, to be put at `answer`. */
void em_clock_asked(struct em_thread *t, int64_t which, uint64_t answer) {
    t->asked_at = em_options.fair && which == CLOCK_MONOTONIC ? answer : 0;
    if (t->asked_at) t->asked_host_ns = em_host_ns();
}

static int64_t answer_of(uint64_t address) {
    struct timespec answer = {0, 0};
    size_t got = em_memory_read(address, &answer, sizeof answer);
    return got == sizeof answer ? answer.tv_sec * INT64_C(1000000000) + answer.tv_nsec : -1;
}

void em_clock_answered(struct em_thread *t) {
    int64_t after = em_host_ns(), answer = answer_of(t->asked_at), ours = em_clock_of(t);
    t->asked_at = 0;
    lock();
    if (answer >= t->asked_host_ns && answer <= after) {
        em_spool_clock(answer, ours);
    } else {
        em_spool_clock(t->asked_host_ns, ours);
        em_spool_clock(after, ours);
    }
    unlock();
}
