/* The guest's system calls: what they mean for turns, for threads, and for time. */
#include "emulate.h"
#include "qemu_plugin.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* Under the fair schedule the guest runs in its turn alone, so it has the turn here, and keeps it through calls that
 * are over at once. */
static void begin_call(struct em_thread *t, enum em_syscall_kind kind, uint64_t a1, uint64_t a2, uint64_t a3) {
    switch (kind) {
    case CALL_CLOCK: em_clock_asked(t, (int64_t)a1, a2); break;
    case CALL_QUICK:
    case CALL_UNMAP:
    case CALL_ADVISE:
    case CALL_SCHEDULER:
    case CALL_AFFINITY:
    case CALL_SET_AFFINITY: break;
    case CALL_EXEC: em_spool_time(em_clock_of(t)); break; /* it may not come back */
    case CALL_CLONE:
        if (!(a1 & CLONE_THREAD)) em_turn_release(t, false);
        break;
    case CALL_FORK: em_turn_release(t, false); break;
    case CALL_YIELD:
        t->spinning = em_turn_wanted();
        if (t->spinning) em_turn_pass(t);
        break;
    case CALL_FUTEX:
        if (em_futex_asked(t, a1, (int64_t)a2, (uint32_t)a3)) em_turn_release(t, true);
        break;
    case CALL_EXIT: em_thread_end(t); break;
    case CALL_EXIT_ALL: em_thread_last_access(t); break;
    case CALL_CLONE3:
    case CALL_OPEN:
    case CALL_OPENAT:
    case CALL_WAIT:
    case CALL_READ:
    case CALL_READ_PIECES:
    case CALL_READ_MESSAGE:
    case CALL_WRITE:
    case CALL_WRITE_PIECES:
    case CALL_WRITE_MESSAGE:
    case CALL_ROOT:
    case CALL_USER:
    case CALL_USERS:
    case CALL_LOCKS:
    case CALL_OTHER: em_turn_release(t, true); break;
    }
}

/* Calls in which a thread may wait for data, a child or the time: QEMU itself sleeps only in others. Not for a lock: who
 * holds one loses its turn here, so that the others sleep far more often than they do when all have a cpu. */
static bool may_sleep(enum em_syscall_kind kind) {
    return kind == CALL_OTHER || kind == CALL_WAIT || (kind >= CALL_READ && kind <= CALL_WRITE_MESSAGE);
}

/* How often the calling thread has given up its cpu to wait. */
static long slept(void) {
    struct rusage used;
    return getrusage(RUSAGE_THREAD, &used) ? 0 : used.ru_nvcsw;
}

/* What must be known of a call before it is made: a program may not come back from it, or not find its folder then, or
 * have no right to it. */
void em_call_begins(int64_t number, uint64_t a1, uint64_t a2) {
    enum em_syscall_kind kind = em_guest_syscall(number);
    if (kind == CALL_EXIT_ALL) em_spool_ends(EM_END_EXIT);
    if (kind == CALL_EXEC) em_spool_ends(EM_END_EXEC);
    if (kind == CALL_ROOT) em_spool_hold_folder();
    if (kind == CALL_USER) em_spool_give((uint32_t)a1);
    if (kind == CALL_USERS) em_spool_give((uint32_t)a2);
}

void em_call_returns(int64_t number) {
    if (em_guest_syscall(number) == CALL_EXEC) em_spool_ends(EM_END_UNKNOWN);
}

void em_on_syscall(unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3) {
    struct em_thread *t = em_thread_self(vcpu);
    enum em_syscall_kind kind = em_guest_syscall(number);
    a1 = em_guest_argument(a1), a2 = em_guest_argument(a2), a3 = em_guest_argument(a3);
    em_settle(t);
    em_cpus_asked(number, a1, a2, a3);
    em_buffers_given(t, kind, a1, a2, a3);
    em_call_begins(number, a1, a2);
    if (em_part_marked(number, a1)) return;
    bool gives_back = kind == CALL_UNMAP || (kind == CALL_ADVISE && a3 == MADV_DONTNEED);
    if (em_options.fair || gives_back || t->late_count) {
        while (!t->holding && em_recording && !em_turn_take(t, true)) {
            /* QEMU does not wait for threads in system calls: what stalls will move on. */
        }
        if (!t->holding) return; /* it is not recorded any more */
        em_catch_up(t);
        if (gives_back && em_options.cached) {
            em_pages_forget(a1, a2, transfers_forget);
            em_slots_forget_pages();
        }
        if (kind == CALL_UNMAP && em_options.uses) em_uses_forget(a1, a2);
        if (kind == CALL_UNMAP) em_runtime_forget();
    }
    bool affinity = kind == CALL_AFFINITY || kind == CALL_SET_AFFINITY;
    if (kind == CALL_CLONE || kind == CALL_CLONE3 || kind == CALL_FORK || kind == CALL_EXEC ||
        (affinity && (a1 == 0 || a1 == t->record.tid)))
        em_thread_unpin(t);
    else if (affinity) em_thread_unpin_other((uint32_t)a1);
    if (em_options.fair) begin_call(t, kind, a1, a2, a3);
    else if (kind == CALL_EXIT) em_thread_end(t);
    else em_turn_release(t, false);
    t->scheduled = kind == CALL_SCHEDULER ? (a1 ? (uint32_t)a1 : t->record.tid) : 0;
    t->slept = may_sleep(kind) ? slept() : -1; /* last: waiting for turns is not the program's */
}

void em_on_syscall_return(unsigned vcpu, int64_t number, int64_t result) {
    struct em_thread *t = em_thread_self(vcpu);
    enum em_syscall_kind kind = em_guest_syscall(number);
    t->record.sleeps += t->slept >= 0 && slept() > t->slept;
    t->slept = -1;
    em_call_returns(number);
    if (kind == CALL_SCHEDULER) em_thread_scheduled(t->scheduled);
    if (kind == CALL_WAIT && result > 0 && em_options.fair) em_clock_waited(result);
    em_cpus_answered(result);
    if (t->asked_at) em_clock_answered(t);
    if (t->futex_state == FUTEX_ASLEEP || t->futex_state == FUTEX_WAKING) em_futex_answered(t, result);
    em_thread_pin_if_many(t);
    while (em_options.fair && em_recording && !t->ended && !t->holding && !em_turn_take(t, true)) {
        /* as above */
    }
    if (t->late_count && t->holding) em_catch_up(t);
    em_buffers_done(t, result);
}
