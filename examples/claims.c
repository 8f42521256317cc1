/* Threads that claim their work by a lock, so that who does what is not the order of their creation.
 *
 *     claims [threads=8] [rounds=60] [KiB per part=512] [turn=0]
 *
 * A queue holds one part of the memory for every thread; each thread takes the next part and works on it to the end.
 * `turn` 0 hands the parts out in the order of creation; any other value stirs the queue, as a busy machine does by
 * chance. A plan names threads by their creation: made from a run with another order, it puts each thread near
 * the memory of another, until `nlaunch --match` sees what they do.
 *
 * The checksum printed at the end does not depend on the order.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static long threads = 8, rounds = 60, kib = 512, turn;
static uint64_t *memory;
static long *queue, claimed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t next = PTHREAD_COND_INITIALIZER;

static long words(void) { return kib * 1024 / (long)sizeof *memory; }

static long claim(long place) {
    pthread_mutex_lock(&lock);
    while (claimed != place) pthread_cond_wait(&next, &lock); /* so that a run can be repeated */
    long part = queue[claimed++];
    pthread_cond_broadcast(&next);
    pthread_mutex_unlock(&lock);
    return part;
}

static void *work(void *argument) {
    const long part = claim((long)(intptr_t)argument), count = words(), all = rounds;
    uint64_t *own = memory + part * count, state = (uint64_t)part + 1;
    for (long i = 0; i < count; i++) own[i] = (uint64_t)i ^ state;
    for (long round = 0; round < all; round++)
        for (long i = 0; i < count; i++) {
            state = state * 6364136223846793005u + own[i];
            own[i] = state >> 7;
        }
    return (void *)(uintptr_t)state;
}

int main(int argc, char **argv) {
    long *settings[] = {&threads, &rounds, &kib, &turn};
    for (int i = 1; i < argc && i <= 4; i++) *settings[i - 1] = atol(argv[i]);
    if (threads < 1 || threads > 512 || rounds < 0 || kib < 1 || kib > 1 << 20) return 2;
    memory = malloc((size_t)(threads * words()) * sizeof *memory);
    queue = malloc((size_t)threads * sizeof *queue);
    pthread_t *ids = malloc((size_t)threads * sizeof *ids);
    if (!memory || !queue || !ids) return 1;
    for (long i = 0; i < threads; i++) queue[i] = i;
    for (long i = threads - 1; turn && i > 0; i--) { /* stir */
        long j = (i * 7919 + turn * 31) % (i + 1), kept = queue[i];
        queue[i] = queue[j];
        queue[j] = kept;
    }
    for (long i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, (void *)(intptr_t)i);
    uint64_t sum = 0;
    for (long i = 0; i < threads; i++) {
        void *result;
        pthread_join(ids[i], &result);
        sum += (uint64_t)(uintptr_t)result;
    }
    printf("%llu\n", (unsigned long long)sum);
    free(ids);
    free(queue);
    free(memory);
    return 0;
}
