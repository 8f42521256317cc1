/* What the preload libraries may slow down: prints the nanoseconds that COUNT of something took, by the clock and of
 * processor time.
 *   threads: created and joined, 64 at a time; small: malloc and free of 64 bytes; large: of 1 MiB; work: arithmetic;
 *   lists: of 100,000 blocks of 16 to 512 bytes, made, read and freed; maps: 1 MiB mapped, touched and unmapped;
 *   stencil: sweeps over 2 MiB by four threads that wait for each other after each;
 *   parent: nothing; both numbers are the processor time that its parent had used by then
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { TOGETHER = 64, NODES = 100000, MAPPED = 1 << 20, PAGE = 4096, WORKERS = 4, CELLS = 1 << 17 };

static long long between(struct timespec from, struct timespec to) {
    return (to.tv_sec - from.tv_sec) * 1000000000ll + (to.tv_nsec - from.tv_nsec);
}

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

struct node {
    struct node *next;
    long value;
};

static double lists(long count) {
    long sum = 0;
    unsigned seed = 1;
    for (long round = 0; round < count; round++) {
        struct node *first = NULL;
        for (int i = 0; i < NODES; i++) {
            struct node *node = malloc(16 + (size_t)rand_r(&seed) % 497);
            *node = (struct node){first, i};
            first = node;
        }
        for (struct node *node = first; node; node = node->next) sum += node->value;
        for (struct node *node = first, *next; node; node = next) next = node->next, free(node);
    }
    return (double)sum;
}

static void maps(long count) {
    for (long i = 0; i < count; i++) {
        char *memory = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (size_t at = 0; at < MAPPED; at += PAGE) memory[at] = 1;
        munmap(memory, MAPPED);
    }
}

static pthread_barrier_t barrier;
static double cells[2][CELLS];
static long sweeps;

static void *sweep(void *number) {
    long from = CELLS / WORKERS * (long)number, to = from + CELLS / WORKERS;
    from += from == 0, to -= to == CELLS;
    for (long turn = 0; turn < sweeps; turn++) {
        const double *old = cells[turn % 2];
        double *new = cells[1 - turn % 2];
        for (long i = from; i < to; i++) new[i] = (old[i - 1] + old[i] + old[i + 1]) / 3;
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static double stencil(long count) {
    pthread_t made[WORKERS];
    sweeps = count;
    cells[0][CELLS / 2] = 1;
    pthread_barrier_init(&barrier, NULL, WORKERS);
    for (long i = 0; i < WORKERS; i++) pthread_create(&made[i], NULL, sweep, (void *)i);
    for (int i = 0; i < WORKERS; i++) pthread_join(made[i], NULL);
    return cells[0][CELLS / 2];
}

static double work(long count) {
    double sum = 1;
    for (long i = 0; i < count; i++) sum = sum * 0.999 + (double)i;
    return sum;
}

static long long parents_time(void) {
    clockid_t clock;
    struct timespec used, none = {0};
    if (clock_getcpuclockid(getppid(), &clock) || clock_gettime(clock, &used)) return 0;
    return between(none, used);
}

int main(int argc, char **argv) {
    long long before = parents_time();
    if (argc != 3) return 2;
    long count = atol(argv[2]);
    struct timespec start, end, used, until;
    volatile double result = 0;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (!strcmp(argv[1], "threads")) threads(count);
    if (!strcmp(argv[1], "small")) blocks(count, 64);
    if (!strcmp(argv[1], "large")) blocks(count, 1 << 20);
    if (!strcmp(argv[1], "work")) result = work(count);
    if (!strcmp(argv[1], "lists")) result = lists(count);
    if (!strcmp(argv[1], "maps")) maps(count);
    if (!strcmp(argv[1], "stencil")) result = stencil(count);
    clock_gettime(CLOCK_MONOTONIC, &end);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &until);
    if (!strcmp(argv[1], "parent")) printf("%lld %lld\n", before, before);
    else printf("%lld %lld\n", between(start, end), between(used, until));
    return result < 0;
}
