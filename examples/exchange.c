/* Pairs of threads that read what the other has written, and change partners half-way.
 *
 *     exchange [threads=8] [rounds=4000] [words per block=16384] [passes=4] [changes=1]
 *
 * In each round thread t writes its own block, and then reads its partner's `passes` times: as bodies that are
 * moved once a step, but read for every tile of the bodies that they attract. The partner is t + threads/2 at first,
 * and its neighbour (t xor 1) after the first of `changes`, which divide the rounds evenly, and so in turn. Each
 * thread makes its own block, so that by first touch it lies where it is written, and not where it is read.
 *
 * The checksum printed at the end does not depend on where threads and memory were.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static long threads = 8, rounds = 4000, words = 16384, passes = 4, changes = 1;
static uint64_t **blocks, *sums;
static pthread_barrier_t barrier;

static long partner_of(long thread, long round) {
    if (round / ((rounds + changes) / (changes + 1)) % 2 == 0) return (thread + threads / 2) % threads;
    long other = thread ^ 1;
    return other < threads ? other : thread;
}

static void put(uint64_t *block, uint64_t value) {
    const long count = words; /* of its own: else it is read again for every word */
    for (long i = 0; i < count; i++) block[i] = value + (uint64_t)i * 0x9E3779B97F4A7C15U;
}

static uint64_t gather(const uint64_t *block, uint64_t value) {
    const long count = words, times = passes;
    for (long pass = 0; pass < times; pass++)
        for (long i = 0; i < count; i++) value = (value << 7 | value >> 57) + block[i];
    return value;
}

static void *run(void *argument) {
    long thread = (long)(intptr_t)argument;
    uint64_t value = (uint64_t)thread;
    if (posix_memalign((void **)&blocks[thread], 4096, (size_t)words * sizeof **blocks)) {
        fputs("exchange: no memory\n", stderr);
        exit(1);
    }
    for (long round = 0; round < rounds; round++) {
        put(blocks[thread], value);
        pthread_barrier_wait(&barrier);
        value = gather(blocks[partner_of(thread, round)], value);
        pthread_barrier_wait(&barrier);
    }
    sums[thread] = value;
    return NULL;
}

int main(int count, char **arguments) {
    long *settings[] = {&threads, &rounds, &words, &passes, &changes};
    for (int i = 1; i < count && i <= 5; i++) *settings[i - 1] = atol(arguments[i]);
    if (threads < 2 || threads > 1024 || rounds < 1 || words < 1 || words > 1L << 28 || passes < 1 || changes < 0) {
        fputs("usage: exchange [threads 2-1024] [rounds] [words per block] [passes] [changes]\n", stderr);
        return 2;
    }
    blocks = calloc((size_t)threads, sizeof *blocks);
    sums = calloc((size_t)threads, sizeof *sums);
    pthread_t *made = malloc((size_t)threads * sizeof *made);
    if (!blocks || !sums || !made || pthread_barrier_init(&barrier, NULL, (unsigned)threads)) return 1;
    for (long t = 1; t < threads; t++)
        if (pthread_create(&made[t], NULL, run, (void *)(intptr_t)t)) return 1;
    run(NULL);
    uint64_t sum = sums[0];
    for (long t = 1; t < threads; t++) {
        pthread_join(made[t], NULL);
        sum = sum * 31 + sums[t];
    }
    printf("checksum %llu\n", (unsigned long long)sum);
    return 0;
}
