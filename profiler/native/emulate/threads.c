/* Guest threads. QEMU runs each on a host thread of its own, which we meet at its first access or system call. */
#include "emulate.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* What a thread is before we have met it: a budget that is always spent leads to thread_self(). */
static struct thread nobody = {.budget = INT64_MIN / 2};
__thread struct thread *self __attribute__((tls_model("initial-exec"))) = &nobody;

static pthread_mutex_t birth = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t at_end;
static struct thread *by_slot[MAX_THREADS];
static uint32_t slots;
static uint32_t births, birth_of[MAX_THREADS]; /* by vcpu */
static bool open_files, many;
static unsigned living;
static int process_cpu = -1;

struct thread *thread_at(uint32_t slot)
{
    return __atomic_load_n(&by_slot[slot], __ATOMIC_ACQUIRE);
}

/* One more than the highest slot that was ever in use. */
uint32_t thread_slots(void)
{
    return __atomic_load_n(&slots, __ATOMIC_ACQUIRE);
}

/* Whether another thread may be on its way to its next access. */
bool threads_alone(void)
{
    return __atomic_load_n(&living, __ATOMIC_RELAXED) < 2;
}

/* Lowest slot without a living thread. */
static uint32_t free_slot(void)
{
    uint32_t slot = 0;
    while (slot < MAX_THREADS - 1 && by_slot[slot] && !by_slot[slot]->ended)
        slot++;
    return slot;
}

static void no_memory(void)
{
    static const char text[] = "numaplan: emulation: out of memory\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(125);
    _exit(125);
}

/* QEMU makes a vcpu when the parent makes the thread: the order of births, whoever runs first. */
void thread_born(unsigned vcpu)
{
    birth_of[vcpu % MAX_THREADS] = __atomic_fetch_add(&births, 1, __ATOMIC_RELAXED);
    turns_await(1);
}

static struct thread *attach(unsigned vcpu)
{
    pthread_mutex_lock(&birth);
    if (!open_files)
        spool_open();
    open_files = true;
    struct thread *t = spool_new_thread();
    if (t == NULL)
        no_memory();
    uint32_t slot = free_slot();
    t->record.tid = (uint32_t)gettid();
    t->record.birth = birth_of[vcpu % MAX_THREADS];
    t->slot = slot;
    t->record.start_ns = -1;
    t->record.end_ns = -1;
    t->to_come = true;
    t->node = options.cpu_nodes[t->record.birth % options.cpus];
    t->domain = options.cpu_domains[t->record.birth % options.cpus];
    t->random = (options.seed + 1) * UINT64_C(0xd1342543de82ef95) + (t->record.birth + 1) * UINT64_C(0x9e3779b97f4a7c15);
    t->gap_left = 1 + (int64_t)(next_random(&t->random) % options.period);
    if (options.cached && !cache_attach(t, by_slot[slot]))
        no_memory();
    if (by_slot[slot])
        t->own = by_slot[slot]->own;
    __atomic_store_n(&by_slot[slot], t, __ATOMIC_RELEASE);
    if (slot >= slots)
        __atomic_store_n(&slots, slot + 1, __ATOMIC_RELEASE);
    many |= t->index > 0;
    __atomic_fetch_add(&living, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&birth);
    pthread_setspecific(at_end, t);
    self = t;
    thread_pin_if_many(t);
    return t;
}

struct thread *thread_self(unsigned vcpu)
{
    return likely(self != &nobody) ? self : attach(vcpu);
}

/* The thread makes no further access, for all we know. */
void thread_last_access(struct thread *t)
{
    t->record.end_ns = clock_of(t);
    spool_time(t->record.end_ns);
}

/* The thread ends. Also the destructor of its host thread, for guests whose calls we do not know. */
void thread_end(struct thread *t)
{
    if (t->ended)
        return;
    pthread_mutex_lock(&birth);
    thread_last_access(t);
    t->ended = true;
    __atomic_fetch_sub(&living, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&birth);
    futex_ends(t);
    turn_release(t, true);
}

static void host_thread_ends(void *t)
{
    thread_end(t);
}

/* Turns are handed over two to four times faster on one host cpu. The program's own affinity is kept aside, and
 * is in force whenever the program could see or inherit it. */
void thread_pin_if_many(struct thread *t)
{
    if (!many || !options.fair || t->pinned || t->ended)
        return;
    if (sched_getaffinity(0, sizeof t->allowed, &t->allowed) != 0)
        return;
    if (process_cpu < 0)
        for (int left = getpid() % CPU_COUNT(&t->allowed); left >= 0; left -= CPU_ISSET(process_cpu, &t->allowed) != 0)
            process_cpu++;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(process_cpu, &one);
    t->pinned = sched_setaffinity(0, sizeof one, &one) == 0;
}

void thread_unpin(struct thread *t)
{
    if (t->pinned)
        sched_setaffinity((pid_t)t->record.tid, sizeof t->allowed, &t->allowed);
    t->pinned = false;
}

/* The program asks for, or sets, the affinity of another of its threads. */
void thread_unpin_other(uint32_t tid)
{
    for (uint32_t slot = 0; slot < thread_slots(); slot++) {
        struct thread *t = thread_at(slot);
        if (t && !t->ended && t->record.tid == tid)
            thread_unpin(t);
    }
}

/* In the child only the forking thread lives on, with files, counts and an identity of its own. */
static void forked(void)
{
    struct thread *parent = self;
    pthread_mutex_init(&birth, NULL);
    memset(by_slot, 0, slots * sizeof *by_slot);
    slots = 0;
    living = 0;
    open_files = many = false;
    process_cpu = -1;
    turns_reset();
    cache_forked();
    clock_forked();
    futex_forked();
    self = &nobody;
    if (parent != &nobody) {
        birth_of[0] = 0;
        births = 1;
        struct thread *t = attach(0);
        t->to_come = false;
        t->turn_base = parent->turn_base + parent->position;
    }
}

bool threads_init(void)
{
    return pthread_key_create(&at_end, host_thread_ends) == 0 && pthread_atfork(NULL, NULL, forked) == 0;
}
