/* Guest threads. QEMU runs each on a host thread of its own, which we meet at its first access or system call. */
#include "emulate.h"
#include "frames.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

/* What a thread is before we have met it: a budget that is always spent leads to em_thread_self(). */
static struct em_thread nobody = {.budget = INT64_MIN / 2};
__thread struct em_thread *em_self __attribute__((tls_model("initial-exec"))) = &nobody;

static pthread_mutex_t birth = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t at_end;
static uint32_t births, birth_of[MAX_THREADS]; /* by vcpu */
static unsigned vcpus;
static bool awaited[MAX_THREADS]; /* by vcpu: whether the draw of turns waits for it */
static bool open_files, many;
static int process_cpu = -1;

static void no_memory(void) {
    static const char text[] = "numaplan: emulation: out of memory\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(125);
    _exit(125);
}

/* QEMU makes a vcpu when the parent makes the thread: the order of births, whoever runs first. */
void em_thread_born(unsigned vcpu) {
    birth_of[vcpu % MAX_THREADS] = __atomic_fetch_add(&births, 1, __ATOMIC_RELAXED);
    if (birth_of[vcpu % MAX_THREADS] == 1) em_before_second_thread();
    awaited[vcpu % MAX_THREADS] = em_recording;
    for (unsigned seen = vcpus; seen <= vcpu; seen = vcpus)
        __atomic_compare_exchange_n(&vcpus, &seen, vcpu + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (em_recording) em_turns_await(1);
}

/* How many there were so far, in this process. */
uint32_t em_threads_made(void) { return __atomic_load_n(&births, __ATOMIC_RELAXED); }

/* One more than the highest number of a vcpu that was ever made. */
unsigned em_thread_vcpus(void) { return vcpus; }

/* QEMU hands the guest's wish on to the kernel, which may refuse it. */
static bool in_real_time(uint32_t tid) {
    int policy = sched_getscheduler((pid_t)tid);
    if (policy < 0) return false;
    policy &= ~SCHED_RESET_ON_FORK;
    return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

static struct em_thread *attach(unsigned vcpu) {
    pthread_mutex_lock(&birth);
    if (!open_files) {
        em_spool_open(em_host_ns(), em_clock_last());
        em_before_tell(em_clock_last());
    }
    open_files = true;
    struct em_thread *t = em_spool_new_thread();
    if (t == NULL) no_memory();
    t->record.tid = (uint32_t)gettid();
    t->record.birth = birth_of[vcpu % MAX_THREADS];
    t->core.slot = em_slot_free();
    t->record.real_time = in_real_time(t->record.tid); /* as its creator, if nobody has said otherwise yet */
    t->record.start_ns = -1;
    t->record.end_ns = -1;
    t->slept = -1;
    t->to_come = awaited[vcpu % MAX_THREADS];
    t->core.node = caches.cpu_nodes[t->record.birth % caches.cpus];
    t->core.counts = &t->record.caches;
    t->core.domain = caches.cpu_domains[t->record.birth % caches.cpus];
    t->random =
        (em_options.seed + 1) * UINT64_C(0xd1342543de82ef95) + (t->record.birth + 1) * UINT64_C(0x9e3779b97f4a7c15);
    t->gap_left = 1 + (int64_t)(em_next_random(&t->random) % em_options.period);
    const struct em_thread *previous = em_thread_at(t->core.slot);
    if (em_options.cached && !caches_attach(&t->core)) no_memory();
    if (previous) t->own = previous->own;
    if (previous) t->frames = previous->frames;
    if (em_options.calls && !t->frames && !(t->frames = em_frames_new())) no_memory();
    em_frames_clear(t->frames);
    if (em_options.cached) reach_attach(&t->reach, &t->core, t->record.past);
    em_slot_take(t);
    many |= t->index > 0;
    pthread_mutex_unlock(&birth);
    pthread_setspecific(at_end, t);
    em_self = t;
    em_thread_pin_if_many(t);
    return t;
}

struct em_thread *em_thread_self(unsigned vcpu) { return likely(em_self != &nobody) ? em_self : attach(vcpu); }

/* The thread makes no further access, for all we know. */
void em_thread_last_access(struct em_thread *t) {
    t->record.end_ns = em_clock_of(t);
    em_spool_time(t->record.end_ns);
}

/* The thread ends. Also the destructor of its host thread, for guests whose calls we do not know. */
void em_thread_end(struct em_thread *t) {
    if (t->ended) return;
    pthread_mutex_lock(&birth);
    if (em_recording) em_thread_last_access(t);
    else t->record.end_ns = em_clock_last();
    em_slot_leave(t);
    pthread_mutex_unlock(&birth);
    if (em_recording) em_futex_ends(t);
    em_turn_release(t, true);
}

/* ---- the recording is paused, and goes on: no guest thread runs, but for some in system calls ---- */

static void at_rest(struct em_thread *t) {
    t->granted = t->budget = t->idle = t->turn_length = 0;
    t->holding = t->block_open = t->spinning = t->to_come = false;
    t->futex_state = FUTEX_NONE;
    t->asked_at = 0;
    t->slept = -1;
    t->buffers.kind = CALL_OTHER;
    t->late_count = 0;
    em_frames_clear(t->frames);
}

void em_threads_pause(void) {
    for (uint32_t slot = 0; slot < em_thread_slots(); slot++) {
        struct em_thread *t = em_thread_at(slot);
        if (!t || t->ended) continue;
        em_settle(t);
        em_thread_unpin(t);
    }
    em_turns_stop();
    em_before_pause();
    if (open_files && em_options.fair) em_spool_clock(em_host_ns(), em_clock_last());
}

void em_threads_resume(void) {
    memset(awaited, 0, sizeof awaited);
    em_before_resume();
    if (open_files) em_before_tell(em_clock_last());
    em_turns_stop();
    em_futex_forked();
    for (uint32_t slot = 0; slot < em_thread_slots(); slot++) {
        struct em_thread *t = em_thread_at(slot);
        if (t && !t->ended) at_rest(t);
    }
    if (open_files && em_options.fair) em_spool_clock(em_host_ns(), em_clock_last());
}

static void host_thread_ends(void *t) { em_thread_end(t); }

/* Turns are handed over two to four times faster on one host cpu: where the process runs just now, which the kernel
 * has chosen by who else runs (another rank, another recording). The program's own affinity is kept aside, and is in
 * force whenever the program could see or inherit it. */
void em_thread_pin_if_many(struct em_thread *t) {
    if (!many || !em_options.fair || t->pinned || t->ended) return;
    if (sched_getaffinity(0, sizeof t->allowed, &t->allowed) != 0) return;
    if (process_cpu < 0) process_cpu = sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(process_cpu, &one);
    t->pinned = sched_setaffinity(0, sizeof one, &one) == 0;
}

void em_thread_unpin(struct em_thread *t) {
    if (t->pinned) sched_setaffinity((pid_t)t->record.tid, sizeof t->allowed, &t->allowed);
    t->pinned = false;
}

/* The program asks for, or sets, the affinity of another of its threads. */
void em_thread_unpin_other(uint32_t tid) {
    for (uint32_t slot = 0; slot < em_thread_slots(); slot++) {
        struct em_thread *t = em_thread_at(slot);
        if (t && !t->ended && t->record.tid == tid) em_thread_unpin(t);
    }
}

void em_thread_scheduled(uint32_t tid) {
    pthread_mutex_lock(&birth); /* one that is about to come asks as it is now, or is found here */
    for (uint32_t slot = 0; slot < em_thread_slots(); slot++) {
        struct em_thread *t = em_thread_at(slot);
        if (t && !t->ended && t->record.tid == tid) t->record.real_time = in_real_time(tid);
    }
    pthread_mutex_unlock(&birth);
}

/* In the child only the forking thread lives on, with files, counts and an identity of its own. */
static void forked(void) {
    struct em_thread *parent = em_self;
    struct em_frames *frames = parent->frames;
    pthread_mutex_init(&birth, NULL);
    em_slots_forked();
    em_part_forked();
    em_cpus_forked();
    open_files = many = false;
    process_cpu = -1;
    em_turns_reset();
    caches_forked();
    em_pages_forked();
    transfers_restart();
    em_uses_forked();
    em_before_forked();
    em_clock_forked();
    em_futex_forked();
    em_frames_forked(frames);
    em_self = &nobody;
    memset(birth_of, 0, sizeof birth_of);
    memset(awaited, 0, sizeof awaited);
    births = 1;
    pthread_setspecific(at_end, NULL);
    if (parent != &nobody && em_recording) {
        struct em_thread *t = attach(0);
        t->to_come = false;
        t->frames = frames;
        t->turn_base = parent->turn_base + parent->position;
    }
}

bool em_threads_init(void) {
    return pthread_key_create(&at_end, host_thread_ends) == 0 && pthread_atfork(NULL, NULL, forked) == 0;
}
