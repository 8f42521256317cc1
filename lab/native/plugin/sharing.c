#include "sharing.h"

#include <pthread.h>
#include <stdlib.h>

#define TASKS (1u << 14) /* that waited; of further ones waiting is not counted */

struct lab_sharing_made lab_sharing_made[VCPUS_MAX];

struct made { /* accesses, and those of them that did not only wait (polls.h) */
    uint64_t all, work;
};

static struct segment { /* of its row's task, since it came */
    _Alignas(64) struct made before;
} segments[VCPUS_MAX];

/* A task that waited before; open addressing. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiting {
    uint64_t task;
    enum { NOT, QUEUED, TAKEN_OUT } state;
    bool ran;
    unsigned vcpu;   /* where it ran last, or who made it did: there it is taken to be queued */
    uint64_t left;   /* what it waited for in the queue that it was taken out of */
    uint64_t waited; /* for what, in all, since it last made accesses */
    uint64_t from[]; /* what each vcpu had made when it was queued */
} *tasks[TASKS];
static unsigned task_count, vcpu_count;
static bool queued, taken_out; /* any */
static unsigned in_queues;

void lab_sharing_open(unsigned vcpus) { vcpu_count = vcpus; }

bool lab_sharing_seen(void) { return queued && taken_out; }

static struct waiting **slot_of(uint64_t task) {
    unsigned slot = (unsigned)((task >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 50);
    while (tasks[slot] && tasks[slot]->task != task) slot = (slot + 1) % TASKS;
    return &tasks[slot];
}

static struct waiting *admit(uint64_t task) {
    struct waiting **slot = slot_of(task);
    if (*slot || task_count >= TASKS / 4 * 3) return *slot;
    *slot = calloc(1, sizeof **slot + vcpu_count * sizeof *(*slot)->from);
    if (*slot) {
        (*slot)->task = task;
        task_count++;
    }
    return *slot;
}

static uint64_t made_on(unsigned vcpu) { return __atomic_load_n(&lab_sharing_made[vcpu].accesses, __ATOMIC_RELAXED); }

void lab_sharing_queue(unsigned vcpu, uint64_t task) {
    pthread_mutex_lock(&lock);
    struct waiting *waiting = admit(task);
    queued = true;
    if (waiting && !waiting->ran) waiting->vcpu = vcpu;
    if (waiting && waiting->state != QUEUED) {
        if (waiting->state == TAKEN_OUT) waiting->waited += waiting->left;
        waiting->state = QUEUED;
        in_queues++;
        for (unsigned v = 0; v < vcpu_count; v++) waiting->from[v] = made_on(v);
    }
    pthread_mutex_unlock(&lock);
}

void lab_sharing_unqueue(uint64_t task) {
    pthread_mutex_lock(&lock);
    struct waiting *waiting = *slot_of(task);
    if (waiting && waiting->state == QUEUED) {
        taken_out = true;
        waiting->state = TAKEN_OUT;
        in_queues--;
        waiting->left = made_on(waiting->vcpu) - waiting->from[waiting->vcpu];
    } else if (waiting && waiting->state == NOT) { /* another one, where a task was that has ended */
        waiting->waited = 0;
        waiting->ran = false;
    }
    pthread_mutex_unlock(&lock);
}

static struct made made_by(const struct lab_row *row) {
    uint64_t all = 0, polls = 0;
    for (unsigned node = 0; node <= NODES_MAX; node++) all += row->accesses[node], polls += row->polls[node];
    return (struct made){all, polls < all ? all - polls : 0};
}

static struct made since(struct made before, struct made now) {
    if (now.all < before.all) return now; /* the counts were cleared meanwhile */
    return (struct made){now.all - before.all, now.work > before.work ? now.work - before.work : 0};
}

void lab_sharing_leave(unsigned vcpu) {
    struct lab_row *row = lab_rows_current[vcpu];
    struct made made = since(segments[vcpu].before, made_by(row));
    pthread_mutex_lock(&lock);
    struct waiting *waiting = *slot_of(row->task);
    if (waiting && made.all && row->lines) {
        row->lines->waited += (uint64_t)((double)waiting->waited * (double)made.work / (double)made.all);
        waiting->waited = 0;
    }
    pthread_mutex_unlock(&lock);
}

void lab_sharing_enter(unsigned vcpu) {
    struct lab_row *row = lab_rows_current[vcpu];
    segments[vcpu].before = made_by(row);
    pthread_mutex_lock(&lock);
    struct waiting *waiting = *slot_of(row->task);
    if (waiting) {
        if (waiting->state != NOT) waiting->waited += made_on(vcpu) - waiting->from[vcpu];
        in_queues -= waiting->state == QUEUED;
        waiting->state = NOT;
        waiting->ran = true;
        waiting->vcpu = vcpu;
    }
    pthread_mutex_unlock(&lock);
}

unsigned lab_sharing_waiting(uint64_t *found, unsigned most) {
    unsigned count = 0;
    pthread_mutex_lock(&lock);
    for (unsigned slot = 0; slot < TASKS && count < most && count < in_queues; slot++)
        if (tasks[slot] && tasks[slot]->state == QUEUED) found[count++] = tasks[slot]->task;
    pthread_mutex_unlock(&lock);
    return count;
}

void lab_sharing_reset(void) {
    pthread_mutex_lock(&lock);
    for (unsigned v = 0; v < VCPUS_MAX; v++) segments[v].before = (struct made){0, 0};
    for (unsigned slot = 0; slot < TASKS; slot++)
        if (tasks[slot]) tasks[slot]->waited = 0;
    pthread_mutex_unlock(&lock);
}
