/* The guest's system calls: what they mean for turns, for threads, and for time. */
#include "emulate.h"
#include "qemu_plugin.h"

#include <sched.h>

/* Under the fair schedule the guest runs in its turn alone, so it has the turn here, and keeps it through calls that
 * are over at once. */
static void begin_call(struct thread *t, enum syscall_kind kind, uint64_t a1, uint64_t a2, uint64_t a3)
{
    switch (kind) {
    case CALL_CLOCK: clock_asked(t, (int64_t)a1, a2); break;
    case CALL_QUICK:
    case CALL_UNMAP:
    case CALL_AFFINITY: break;
    case CALL_EXEC: spool_time(clock_of(t)); break; /* it may not come back */
    case CALL_CLONE:
        if (!(a1 & CLONE_THREAD))
            turn_release(t, false);
        break;
    case CALL_FORK: turn_release(t, false); break;
    case CALL_YIELD:
        t->spinning = turn_wanted();
        if (t->spinning)
            turn_pass(t);
        break;
    case CALL_FUTEX:
        if (futex_asked(t, a1, (int64_t)a2, (uint32_t)a3))
            turn_release(t, true);
        break;
    case CALL_EXIT: thread_end(t); break;
    case CALL_EXIT_ALL: thread_last_access(t); break;
    case CALL_CLONE3:
    case CALL_OTHER: turn_release(t, true); break;
    }
}

void on_syscall(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                       uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    struct thread *t = thread_self(vcpu);
    enum syscall_kind kind = guest_syscall(number);
    (void)id, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    settle(t);
    if (options.fair || kind == CALL_UNMAP || t->late_count) {
        while (!t->holding && !turn_take(t, true)) {
            /* QEMU does not wait for threads in system calls: what stalls will move on. */
        }
        catch_up(t);
        if (kind == CALL_UNMAP && options.cached)
            cache_forget_pages(a1, a2);
    }
    if (kind == CALL_CLONE || kind == CALL_CLONE3 || kind == CALL_FORK || kind == CALL_EXEC ||
        (kind == CALL_AFFINITY && (a1 == 0 || a1 == t->record.tid)))
        thread_unpin(t);
    else if (kind == CALL_AFFINITY)
        thread_unpin_other((uint32_t)a1);
    if (options.fair)
        begin_call(t, kind, a1, a2, a3);
    else if (kind == CALL_EXIT)
        thread_end(t);
    else
        turn_release(t, false);
}

void on_syscall_return(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result)
{
    struct thread *t = thread_self(vcpu);
    (void)id, (void)number;
    if (t->asked_at)
        clock_answered(t);
    if (t->futex_state == FUTEX_ASLEEP || t->futex_state == FUTEX_WAKING)
        futex_answered(t, result);
    thread_pin_if_many(t);
    while (options.fair && !t->ended && !t->holding && !turn_take(t, true)) {
        /* as above */
    }
    if (t->late_count && t->holding)
        catch_up(t);
}
