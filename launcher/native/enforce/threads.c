/* What the plan says of threads: applied to each before it runs, and looked at when it ends. */
#include "enforce.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOMENT_NS = 100000, MOMENTS = 5000 };

static _Atomic int others; /* threads beside the main one that live or are being made */
static _Atomic int unborn; /* those of them that are being made */

static uint32_t number_of(const struct pt_thread *thread) { return (uint32_t)(thread - nf_plan.table.threads); }

static void place_own_memory(uint32_t number, const struct pt_thread *plan, uintptr_t stack, size_t bytes) {
    if (!plan || plan->node < 0 || !stack || !np_may_call()) return;
    if (number != 0) nf_place_stack(stack, bytes, plan->node);
    else if (nf_plan.table.header->nodes > 1) {
        nf_move_stack(stack + bytes, plan->node);
        nf_move_storage(plan->node);
    }
}

/* What a thread has that the plan does not name: that of a planned one which it follows, or that of a pool, which may grow
 * by itself, in another way in each run. (A thread made by clone() may have anything in its thread-local storage.) */
static const struct pt_thread *cpus_of(const struct pt_thread *seat) {
    const struct pt_thread *gives = np_self.gives;
    if (seat) return seat;
    if (gives >= nf_plan.table.threads && gives < nf_plan.table.threads + nf_plan.table.header->threads) return gives;
    return pt_find_unplanned(&nf_plan.table, nf_process_hash());
}

static bool keeps_own(const struct pt_thread *bind, bool planned) {
    return nf_keeps_own(&nf_plan.table.cpus[bind->first_cpu], bind->cpus, planned);
}

/* A thread inherits its creator's cpus, and would wait there for its first turn only to leave. */
bool nf_thread_made(uint32_t number, uint64_t path, pthread_t thread) {
    const struct pt_thread *plan = nf_plan.loaded ? pt_find_thread(&nf_plan.table, nf_process_hash(), path) : NULL;
    const struct pt_thread *seat = plan || !nf_plan.loaded ? plan : nf_lane_seat(np_self.hands);
    const struct pt_thread *bind = nf_plan.loaded ? cpus_of(seat) : NULL;
    bool made = false;
    int saved = errno;
    if (!bind || !bind->cpus || !np_enter()) return false;
    pid_t tid = np_may_call() ? np_tid_of(thread) : 0;
    if (tid && plan) nf_planned_started(number_of(plan), number, tid);
    if (tid) made = nf_bind_made(tid, &nf_plan.table.cpus[bind->first_cpu], bind->cpus);
    np_leave();
    errno = saved;
    return made;
}

void nf_thread_born(uint32_t number, uint64_t path, uintptr_t stack, size_t stack_bytes, bool bound) {
    if (!nf_plan.loaded) return;
    int saved = errno;
    const struct pt_thread *plan = pt_find_thread(&nf_plan.table, nf_process_hash(), path);
    bool knows = np_thread_number() == number;
    const struct pt_thread *seat = plan || !knows ? plan : nf_lane_seat(np_self.hands);
    const struct pt_thread *bind = cpus_of(seat);
    /* Before it is bound: from here on another thread's wish does not move it. */
    if (plan) nf_planned_started(number_of(plan), number, np_tid());
    if (plan && knows) np_self.gives = plan->pool ? &nf_plan.table.threads[plan->pool - 1] : NULL;
    if (knows) nf_lane_begin(np_self.hands);
    if (knows) np_self.hands = NULL;
    if (number != 0) atomic_fetch_sub(&unborn, 1);
    bool enters = np_enter(), own = knows && np_self.chosen && !bound && bind && keeps_own(bind, seat != NULL);
    if (own) bind = NULL;
    bound = bind && (bound || (!enters && nf_plan.followed));
    if (bound) nf_bound_from_outside(&nf_plan.table.cpus[bind->first_cpu], bind->cpus, seat != NULL);
    if (!enters) return;
    bool binds = bind && !bound && np_may_call();
    int error = binds ? nf_bind(&nf_plan.table.cpus[bind->first_cpu], bind->cpus, seat != NULL) : 0;
    place_own_memory(number, own ? NULL : seat, stack, stack_bytes);
    enum nf_named named = plan ? NF_PLANNED : seat ? NF_FOLLOWS : NF_UNPLANNED;
    if (np_may_call()) nf_log_affinity(number, path, error, named, false, 0);
    np_leave();
    errno = saved;
}

void nf_thread_ends(uint32_t number, uint64_t path) {
    if (nf_plan.loaded && number != 0) atomic_fetch_sub(&others, 1);
    if (np_thread_number() == number) nf_lane_end();
    const struct pt_thread *plan = nf_plan.loaded ? pt_find_thread(&nf_plan.table, nf_process_hash(), path) : NULL;
    if (!plan) return;
    if (np_enter()) {
        if (np_may_call()) nf_log_affinity(number, plan->path, 0, NF_PLANNED, true, 0);
        np_leave();
    }
    nf_planned_ended(number_of(plan));
}

/* Of another thread, that the calling one is about to make (1), or could not (-1). */
void nf_thread_coming(int change) {
    if (!nf_plan.loaded) return;
    if (change < 0) pt_lane_leave(np_self.hands);
    np_self.hands = change > 0 ? nf_lane_take(np_hash_child(np_self.hash, np_self.children)) : NULL;
    atomic_fetch_add(&unborn, change);
    if (atomic_fetch_add(&others, change) == 0 && change > 0) nf_regions_shared();
}

void nf_threads_forked(void) {
    atomic_store(&others, 0);
    atomic_store(&unborn, 0);
    nf_planned_forked();
    nf_lanes_forked();
}

/* A tracer names later threads by those that are in the log. */
void nf_threads_settle(void) {
    const struct timespec moment = {0, MOMENT_NS};
    for (int turn = 0; atomic_load(&unborn) > 0 && turn < MOMENTS; turn++)
        syscall(SYS_nanosleep, &moment, NULL); /* libc's may end a thread that is to be cancelled */
}

void nf_threads_end(void) {
    for (uint32_t i = 0; i < nf_plan.table.header->threads && np_may_call(); i++) {
        uint32_t thread;
        pid_t tid = nf_planned_take(i, &thread);
        if (tid) nf_log_affinity(thread, nf_plan.table.threads[i].path, 0, NF_PLANNED, true, tid);
    }
}
