/* Programs that have one fault each, or none: `advised FAULT [THREADS]`. Compiled with -g. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, CHUNK = 2048, CHUNKS = 64, ROUNDS = 12, TABLE = 1 << 17, WORK = 1 << 13 };

struct counter {
    long hits;
    int misses;
    int kind;
};
struct state {
    long head;
    long tail;
};

static struct counter counters[MOST];
static struct state state __attribute__((aligned(64)));
static long *block;
static atomic_int next_task;
static pthread_barrier_t gate;
static int threads = 4;
static const char *fault;

/* Each counts in an item of its own. */
static void count(long me) {
    volatile struct counter *own = &counters[me];
    for (int turn = 0; turn < WORK; turn++) own->hits++;
}

/* Two threads use two fields of one struct. */
static void enqueue(long me) {
    volatile long *own = me & 1 ? &state.tail : &state.head;
    for (int turn = 0; turn < WORK && me < 2; turn++) ++*own;
}

/* Tasks in another order each round, to whoever comes. */
static void take_tasks(void) {
    for (int task; (task = atomic_fetch_add(&next_task, 1)) < CHUNKS * ROUNDS;) {
        unsigned at = (unsigned)task * 2654435761u >> 8;
        long *chunk = block + (size_t)(at % CHUNKS) * CHUNK;
        for (int i = 0; i < CHUNK; i++) chunk[i] += task;
    }
}

/* All read all of what the first has made. */
static long look_up(long me) {
    unsigned at = (unsigned)me * 7919u + 1;
    volatile long found = 0;
    for (int turn = 0; turn < 8 * WORK; turn++) {
        at = at * 1664525u + 1013904223u;
        found += block[at % TABLE];
    }
    return found;
}

/* Each has its own part of one block, and writes it first. */
static void own_part(long me) {
    size_t part = (size_t)(CHUNK * CHUNKS / threads);
    volatile long *mine = block + (size_t)me * part;
    for (int turn = 0; turn < ROUNDS; turn++)
        for (size_t i = 0; i < part; i++) mine[i] += turn;
}

static void *run(void *number) {
    long me = (long)number;
    pthread_barrier_wait(&gate);
    if (!strcmp(fault, "items")) count(me);
    if (!strcmp(fault, "fields")) enqueue(me);
    if (!strcmp(fault, "pool")) take_tasks();
    if (!strcmp(fault, "table")) look_up(me);
    if (!strcmp(fault, "own")) own_part(me);
    return NULL;
}

int main(int count_, char **words) {
    fault = count_ > 1 ? words[1] : "own";
    threads = count_ > 2 ? atoi(words[2]) : threads;
    size_t bytes = sizeof *block * (size_t)(strcmp(fault, "table") ? CHUNK * CHUNKS : TABLE);
    block = aligned_alloc(1 << 21, (bytes + (1 << 21) - 1) & ~((size_t)(1 << 21) - 1));
    if (!strcmp(fault, "table") || !strcmp(fault, "pool"))
        for (size_t i = 0; i < bytes / sizeof *block; i++) block[i] = (long)i;
    pthread_barrier_init(&gate, NULL, (unsigned)threads);
    pthread_t started[MOST];
    for (long i = 1; i < threads; i++) pthread_create(&started[i], NULL, run, (void *)i);
    run(NULL);
    for (long i = 1; i < threads; i++) pthread_join(started[i], NULL);
    free(block);
    return 0;
}
