/* A pipeline whose neighbouring stages are not consecutive threads.
 *
 *     pipeline [stages=8] [items=800] [words per item=2048]
 *
 * Every stage is a thread. A stage reads each item from the ring before it, transforms it with a table of its own, and
 * writes it to the ring behind it; a ring has SLOTS slots. Thread t works on stage_of(t), an order that puts the two
 * ends of most rings far apart in the order of creation, so that placing threads by their ids separates them. The
 * main thread makes all rings and tables, so that by first touch every page lies on its node.
 *
 * Each ring is shared by two stages, so the best placement puts runs of neighbouring stages on one node, with
 * their rings; only the rings between nodes remain remote for one of their ends.
 *
 * The checksum printed at the end does not depend on where threads and memory were.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4, TABLE_WORDS = 8192 };

struct ring {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    long filled, emptied; /* items ever written and read */
    uint64_t *slots;      /* SLOTS items one after another */
};

static long stages = 8, items = 800, words = 2048;
static struct ring *rings; /* ring s is between stage s and stage s + 1 */
static uint64_t *tables;   /* one a stage */
static uint64_t result;

/* Bit by bit from the other end: 0, 4, 2, 6, 1, 5, 3, 7 for eight; other counts skip what is too large. */
static long stage_of(long thread) {
    long size = 1;
    while (size < stages) size *= 2;
    for (long i = 0, found = 0; i < size; i++) {
        long stage = 0;
        for (long bit = 1, mirrored = size / 2; bit < size; bit *= 2, mirrored /= 2)
            if (i & bit) stage |= mirrored;
        if (stage < stages && found++ == thread) return stage;
    }
    return thread;
}

static void wait_until(struct ring *ring, int for_room) {
    pthread_mutex_lock(&ring->lock);
    while (for_room ? ring->filled - ring->emptied == SLOTS : ring->filled == ring->emptied)
        pthread_cond_wait(&ring->moved, &ring->lock);
    pthread_mutex_unlock(&ring->lock);
}

static void advance(struct ring *ring, long *count) {
    pthread_mutex_lock(&ring->lock);
    ++*count;
    pthread_cond_broadcast(&ring->moved);
    pthread_mutex_unlock(&ring->lock);
}

static uint64_t *slot(const struct ring *ring, long item) { return ring->slots + item % SLOTS * words; }

/* The three loops below keep sizes and sums in locals: what they touch is rings and tables only. */
static void transform(const uint64_t *from, uint64_t *to, long count, const uint64_t *table) {
    for (long i = 0; i < count; i++) to[i] = from[i] * 6364136223846793005u + table[from[i] % TABLE_WORDS];
}

static void produce(uint64_t *to, long count, long item) {
    for (long i = 0; i < count; i++) to[i] = (uint64_t)(item * count + i);
}

static uint64_t consume(const uint64_t *from, long count, uint64_t sum) {
    for (long i = 0; i < count; i++) sum = sum * 31 + from[i];
    return sum;
}

static void *work(void *argument) {
    long stage = stage_of((long)(intptr_t)argument);
    const uint64_t *table = tables + stage * TABLE_WORDS;
    struct ring *before = stage > 0 ? &rings[stage - 1] : NULL;
    struct ring *behind = stage + 1 < stages ? &rings[stage] : NULL;
    for (long item = 0; item < items; item++) {
        if (before) wait_until(before, 0);
        if (behind) wait_until(behind, 1);
        if (before && behind) transform(slot(before, item), slot(behind, item), words, table);
        else if (behind) produce(slot(behind, item), words, item);
        else result = consume(slot(before, item), words, result);
        if (before) advance(before, &before->emptied);
        if (behind) advance(behind, &behind->filled);
    }
    return NULL;
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "pipeline: out of memory\n");
        exit(1);
    }
    return memory;
}

static void prepare(void) {
    rings = allocate((size_t)stages, sizeof *rings);
    tables = allocate((size_t)(stages * TABLE_WORDS), sizeof *tables);
    for (long i = 0; i < stages * TABLE_WORDS; i++) tables[i] = (uint64_t)i * 2654435761u;
    for (long s = 0; s + 1 < stages; s++) {
        pthread_mutex_init(&rings[s].lock, NULL);
        pthread_cond_init(&rings[s].moved, NULL);
        rings[s].slots = allocate((size_t)(SLOTS * words), sizeof(uint64_t));
        memset(rings[s].slots, 0xff, (size_t)(SLOTS * words) * sizeof(uint64_t));
    }
}

int main(int argc, char **argv) {
    long *parameters[] = {&stages, &items, &words};
    for (int i = 1; i < argc && i <= 3; i++) *parameters[i - 1] = atol(argv[i]);
    if (stages < 2 || stages > 1024 || items < 1 || words < 1) {
        fprintf(stderr, "usage: pipeline [stages, 2 to 1024] [items] [words per item]\n");
        return 2;
    }
    prepare();
    pthread_t *threads = allocate((size_t)stages, sizeof *threads);
    for (long t = 1; t < stages; t++)
        if (pthread_create(&threads[t], NULL, work, (void *)(intptr_t)t)) {
            fprintf(stderr, "pipeline: cannot make thread %ld\n", t);
            return 1;
        }
    work((void *)(intptr_t)0);
    for (long t = 1; t < stages; t++) pthread_join(threads[t], NULL);
    printf("checksum %016llx\n", (unsigned long long)result);
    return 0;
}
