/* A master with workers that all read one shared table.
 *
 *     master_worker [workers=7] [tasks=1200] [steps per task=8192] [table words=131072]
 *
 * The main thread is the master: it makes the table and then hands out tasks one by one. A worker takes a task, walks
 * the table in an order of the task's own, keeps a private histogram, and hands the sum back. All workers read all of
 * the table about equally, so no placement of threads makes it local to everybody: the best one can do is to spread
 * the table over the nodes (no node's memory is overrun) and to keep each worker's histogram on the worker's node.
 *
 * The checksum printed at the end does not depend on where threads and memory were, nor on who did which task.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BINS = 16384 };

static long workers = 7, tasks = 1200, steps = 8192, table_words = 131072;
static uint64_t *table;
static uint64_t **histograms; /* one a worker, made by the master */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long offered = -1; /* the task on offer; -1: taken, tasks: no more will come */
static long finished;
static uint64_t total;

/* The next task, or `tasks` when all are done. */
static long take(void) {
    pthread_mutex_lock(&lock);
    while (offered == -1) pthread_cond_wait(&changed, &lock);
    long task = offered;
    if (task < tasks) offered = -1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return task;
}

static void hand_back(uint64_t sum) {
    pthread_mutex_lock(&lock);
    total += sum;
    finished++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void offer(long task) {
    pthread_mutex_lock(&lock);
    while (offered != -1) pthread_cond_wait(&changed, &lock);
    offered = task;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static uint64_t walk(long task, long count, const uint64_t *shared, uint64_t length, uint64_t *histogram) {
    uint64_t place = (uint64_t)task * 2654435761u, sum = 0;
    for (long i = 0; i < count; i++) {
        place = place * 6364136223846793005u + 1442695040888963407u;
        uint64_t value = shared[(place >> 33) % length];
        histogram[value % BINS]++;
        sum += value;
    }
    return sum;
}

static void *work(void *argument) {
    uint64_t *histogram = histograms[(intptr_t)argument];
    for (long task = take(); task < tasks; task = take())
        hand_back(walk(task, steps, table, (uint64_t)table_words, histogram));
    return NULL;
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "master_worker: out of memory\n");
        exit(1);
    }
    return memory;
}

static void prepare(void) {
    table = allocate((size_t)table_words, sizeof *table);
    for (long i = 0; i < table_words; i++) table[i] = (uint64_t)i * 11400714819323198485u >> 17;
    histograms = allocate((size_t)workers, sizeof *histograms);
    for (long w = 0; w < workers; w++) {
        histograms[w] = allocate(BINS, sizeof **histograms);
        for (long bin = 0; bin < BINS; bin++) histograms[w][bin] = 1; /* the first touch is the master's */
    }
}

/* How often the bins were hit, the same however tasks were shared out. */
static uint64_t merged(void) {
    uint64_t sum = 0;
    for (long bin = 0; bin < BINS; bin++) {
        uint64_t hits = 0;
        for (long w = 0; w < workers; w++) hits += histograms[w][bin];
        sum = sum * 31 + hits;
    }
    return sum;
}

int main(int argc, char **argv) {
    long *parameters[] = {&workers, &tasks, &steps, &table_words};
    for (int i = 1; i < argc && i <= 4; i++) *parameters[i - 1] = atol(argv[i]);
    if (workers < 1 || workers > 1024 || tasks < 1 || steps < 1 || table_words < 1) {
        fprintf(stderr, "usage: master_worker [workers, 1 to 1024] [tasks] [steps per task] [table words]\n");
        return 2;
    }
    prepare();
    pthread_t *threads = allocate((size_t)workers, sizeof *threads);
    for (long w = 0; w < workers; w++)
        if (pthread_create(&threads[w], NULL, work, (void *)(intptr_t)w)) {
            fprintf(stderr, "master_worker: cannot make worker %ld\n", w);
            return 1;
        }
    for (long task = 0; task <= tasks; task++) offer(task);
    for (long w = 0; w < workers; w++) pthread_join(threads[w], NULL);
    printf("checksum %016llx after %ld tasks\n", (unsigned long long)(total * 31 + merged()), finished);
    return 0;
}
