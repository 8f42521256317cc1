/* What the preload libraries may slow down: prints the nanoseconds that COUNT of something took.
 *   threads: created and joined, 64 at a time; small: malloc and free of 64 bytes; large: of 1 MiB; work: arithmetic
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TOGETHER = 64 };

static void *nothing(void *argument) { return argument; }

static void threads(long count) {
    for (long done = 0; done < count; done += TOGETHER) {
        pthread_t made[TOGETHER];
        for (int i = 0; i < TOGETHER; i++) pthread_create(&made[i], NULL, nothing, NULL);
        for (int i = 0; i < TOGETHER; i++) pthread_join(made[i], NULL);
    }
}

static void blocks(long count, size_t bytes) {
    for (long i = 0; i < count; i++) {
        char *volatile block = malloc(bytes);
        block[0] = 1;
        free(block);
    }
}

static double work(long count) {
    double sum = 1;
    for (long i = 0; i < count; i++) sum = sum * 0.999 + (double)i;
    return sum;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    long count = atol(argv[2]);
    struct timespec start, end;
    volatile double result = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (!strcmp(argv[1], "threads")) threads(count);
    if (!strcmp(argv[1], "small")) blocks(count, 64);
    if (!strcmp(argv[1], "large")) blocks(count, 1 << 20);
    if (!strcmp(argv[1], "work")) result = work(count);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%lld\n", (end.tv_sec - start.tv_sec) * 1000000000ll + (end.tv_nsec - start.tv_nsec));
    return result < 0;
}
