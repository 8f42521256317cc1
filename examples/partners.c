/* Pairs of threads that change partners half-way.
 *
 *     partners [threads=8] [rounds=4000] [words per block=16384]
 *
 * Thread t reads and writes its own block and its partner's: t and t + threads/2 in the first half of the rounds, t and
 * its neighbour (t xor 1) in the second. The main thread makes all blocks, so that by first touch they lie on its
 * node. No placement of threads fits both halves; one that follows does.
 *
 * The checksum printed at the end does not depend on where threads and memory were.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static long threads = 8, rounds = 4000, words = 16384;
static uint64_t **blocks;
static pthread_barrier_t barrier;

static long partner_of(long thread, long round) {
    if (round < rounds / 2) return (thread + threads / 2) % threads;
    long other = thread ^ 1;
    return other < threads ? other : thread;
}

/* Both write to both blocks. Of every four words two are each one's, one the source of even rounds and the target
 * of odd ones and one the other way round, so that no word that is read is being written. */
static void work(long thread, long round) {
    long partner = partner_of(thread, round);
    long source = round & 1, target = 2 * (thread > partner) + (source ^ 1);
    for (int half = 0; half < 2; half++) {
        uint64_t *block = blocks[half ? partner : thread];
        for (long i = 0; i < words; i += 4) {
            uint64_t sum = block[i + source] * 5 + block[i + source + 2];
            block[i + target] = (sum << 7 | sum >> 57) + (uint64_t)i;
        }
        if (partner == thread) return;
    }
}

static void *run(void *argument) {
    long thread = (long)(intptr_t)argument;
    for (long round = 0; round < rounds; round++) {
        work(thread, round);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static uint64_t checksum(void) {
    uint64_t sum = 0;
    for (long t = 0; t < threads; t++)
        for (long i = 0; i < words; i++) sum = sum * 31 + blocks[t][i];
    return sum;
}

int main(int count, char **arguments) {
    if (count > 1) threads = atol(arguments[1]);
    if (count > 2) rounds = atol(arguments[2]);
    if (count > 3) words = atol(arguments[3]) & ~3L;
    if (threads < 2 || threads > 1024 || rounds < 1 || words < 4 || words > 1L << 28) {
        fputs("usage: partners [threads 2-1024] [rounds] [words per block]\n", stderr);
        return 2;
    }
    blocks = malloc((size_t)threads * sizeof *blocks);
    pthread_t *made = malloc((size_t)threads * sizeof *made);
    if (!blocks || !made || pthread_barrier_init(&barrier, NULL, (unsigned)threads)) return 1;
    for (long t = 0; t < threads; t++) {
        if (posix_memalign((void **)&blocks[t], 4096, (size_t)words * sizeof **blocks)) return 1;
        for (long i = 0; i < words; i++) blocks[t][i] = (uint64_t)(t * words + i) * 0x9E3779B97F4A7C15U;
    }
    for (long t = 1; t < threads; t++)
        if (pthread_create(&made[t], NULL, run, (void *)(intptr_t)t)) return 1;
    run(NULL);
    for (long t = 1; t < threads; t++) pthread_join(made[t], NULL);
    printf("checksum %llu\n", (unsigned long long)checksum());
    return 0;
}
