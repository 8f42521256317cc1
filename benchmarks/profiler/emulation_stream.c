/* Streams: y[i] += 3·x[i] over 8 MiB, two loads and one store an element. usage: stream THREADS PASSES */
#include <pthread.h>
#include <stdlib.h>

#define ELEMENTS (1l << 19)

static long passes;

static void *stream(void *unused) {
    long *x = calloc(ELEMENTS, sizeof *x), *y = calloc(ELEMENTS, sizeof *y);
    for (long pass = 0; x && y && pass < passes; pass++)
        for (long i = 0; i < ELEMENTS; i++) y[i] += 3 * x[i];
    __asm__ volatile("" ::"r"(y) : "memory");
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[64];
    long count = argc > 2 ? atol(argv[1]) : 0;
    if (count < 1 || count > 64) return 2;
    passes = atol(argv[2]);
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, stream, NULL);
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    return 0;
}
