/* Temporaries of each time step: the main thread makes one that all threads work on, each in its part, and each thread one
 * of its own, of another size in every step. Some bytes that stay lie between, so that they do not all begin at one address.
 *
 *     launch_temporaries THREADS STEPS [KIB=256]    KIB: of the largest
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, KEPT = 128 };
static long threads, steps, largest;
static char *shared;
static _Atomic long sum;
static pthread_barrier_t barrier;

static char *own_temporary(size_t bytes) { return malloc(bytes); }

static void *work(void *number) {
    long me = (long)(intptr_t)number;
    for (long step = 0; step < steps; step++) {
        if (me == 0) shared = malloc((size_t)largest);
        pthread_barrier_wait(&barrier);
        size_t part = (size_t)largest / (size_t)threads, size = (size_t)(largest / 2 + step % 7 * 4096);
        char *own = own_temporary(size), *kept = malloc(KEPT);
        memset(kept, 1, KEPT);
        for (int pass = 0; pass < 4; pass++) {
            memset(shared + (size_t)me * part, pass + 1, part);
            memset(own, pass, size);
        }
        sum += own[size / 2] + shared[(size_t)me * part];
        pthread_barrier_wait(&barrier);
        free(own);
        if (me == 0) free(shared);
    }
    return NULL;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    threads = atol(words[1]), steps = atol(words[2]), largest = (count > 3 ? atol(words[3]) : 256) << 10;
    if (threads < 1 || threads > MOST) return 2;
    pthread_t made[MOST];
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long i = 1; i < threads; i++) pthread_create(&made[i], NULL, work, (void *)(intptr_t)i);
    work(NULL);
    for (long i = 1; i < threads; i++) pthread_join(made[i], NULL);
    printf("%ld\n", (long)sum);
    return 0;
}
