/* Kernels whose communication is known from their source: communication_kernels KERNEL THREADS ITERATIONS.
 * Every role writes its own memory, all wait, every role reads what its partners wrote, all wait. Thread numbers
 * are not roles: they are mixed up, so that no order of creation is a good placement by chance. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, OWN = 4096, BORDER = 1024, LINE_WORDS = 8 };

static double data[MOST][OWN] __attribute__((aligned(4096)));
static double task[MOST][OWN] __attribute__((aligned(4096)));
static double words[MOST][BORDER] __attribute__((aligned(4096))); /* lines that two roles write */
static double sum[MOST][LINE_WORDS];
static int threads, iterations, side;
static pthread_barrier_t barrier;
static void (*kernel)(int role, int iteration);

static void take(int role, double memory[MOST][OWN], int other, int from, int count) {
    double total = 0;
    for (int i = from; i < from + count; i++) total += *(volatile double *)&memory[other][i];
    sum[role][0] += total;
}

static void ring(int role, int iteration) {
    (void)iteration;
    take(role, data, (role + 1) % threads, 0, BORDER);
    take(role, data, (role + threads - 1) % threads, OWN - BORDER, BORDER);
}

static void far(int role, int iteration) {
    (void)iteration;
    take(role, data, (role + threads / 2) % threads, 0, 2 * BORDER);
}

static void neighbours(int role, int row, int column, bool by_rows) {
    static const int step[4][2] = {{0, 1}, {0, -1}, {1, 0}, {-1, 0}};
    for (int k = 0; k < 4; k++) {
        int r = row + step[k][0], c = column + step[k][1];
        if (r >= 0 && r < side && c >= 0 && c < side)
            take(role, data, by_rows ? r * side + c : c * side + r, k * BORDER, BORDER);
    }
}

static void grid_rows(int role, int iteration) {
    (void)iteration;
    neighbours(role, role / side, role % side, true);
}

static void grid_columns(int role, int iteration) {
    (void)iteration;
    neighbours(role, role % side, role / side, false);
}

static void tree(int role, int iteration) {
    (void)iteration;
    for (int child = 2 * role + 1; child <= 2 * role + 2 && child < threads; child++)
        take(role, data, child, 0, BORDER);
}

static void all_to_all(int role, int iteration) {
    (void)iteration;
    for (int other = 0; other < threads; other++)
        if (other != role) take(role, data, other, role * (OWN / threads), OWN / threads);
}

static void pipeline(int role, int iteration) {
    (void)iteration;
    if (role > 0) take(role, data, role - 1, 0, OWN / 2);
}

static void master_worker(int role, int iteration) {
    (void)iteration;
    if (role > 0) take(role, task, role, 0, BORDER);
    for (int other = 1; role == 0 && other < threads; other++) take(role, data, other, 0, BORDER / 4);
}

static void sparse(int role, int iteration) {
    (void)iteration;
    unsigned state = 12345u + 977u * (unsigned)role;
    for (int k = 0; k < 2; k++) {
        state = state * 1664525u + 1013904223u;
        int other = (role + 1 + (int)(state >> 16) % (threads - 1)) % threads;
        take(role, data, other, k * BORDER, BORDER);
    }
}

static void phases(int role, int iteration) {
    take(role, data, iteration < iterations / 2 ? role ^ 1 : (role + threads / 2) % threads, 0, 2 * BORDER);
}

/* Lines that only the two of a pair write: nothing else is shared but what threads exchange as they start. */
static void false_pairs(int role, int iteration) {
    (void)iteration;
    int half = threads / 2, pair = role % half;
    for (int i = 0; i < BORDER; i += LINE_WORDS) *(volatile double *)&words[pair][i + role / half] += 1;
}

static void false_sharing(int role, int iteration) {
    int half = threads / 2, pair = role % half;
    false_pairs(role, iteration);
    /* A quarter of the lines with the next pair: what crosses nodes is then not only how threads start. */
    for (int i = 0; i < BORDER / 4; i += LINE_WORDS)
        *(volatile double *)&words[(pair + 1) % half][i + 2 + role / half] += 1;
}

static const struct {
    const char *name;
    void (*run)(int role, int iteration);
} kernels[] = {
    {"ring", ring},
    {"far", far},
    {"grid-rows", grid_rows},
    {"tree", tree},
    {"pipeline", pipeline},
    {"grid-columns", grid_columns},
    {"sparse", sparse},
    {"phases", phases},
    {"master-worker", master_worker},
    {"all-to-all", all_to_all},
    {"false-sharing", false_sharing},
    {"false-pairs", false_pairs},
};

static void *work(void *argument) {
    int thread = (int)(size_t)argument, role = (thread * 5 + 3) % threads;
    for (int iteration = 0; iteration < iterations; iteration++) {
        for (int i = 0; i < OWN; i++) *(volatile double *)&data[role][i] = iteration;
        if (kernel == master_worker && role == 0)
            for (int other = 1; other < threads; other++)
                for (int i = 0; i < BORDER; i++) *(volatile double *)&task[other][i] = iteration;
        pthread_barrier_wait(&barrier);
        kernel(role, iteration);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv) {
    threads = argc > 2 ? atoi(argv[2]) : 0;
    iterations = argc > 3 ? atoi(argv[3]) : 0;
    for (size_t k = 0; argc > 1 && k < sizeof kernels / sizeof *kernels; k++)
        if (strcmp(argv[1], kernels[k].name) == 0) kernel = kernels[k].run;
    while (side * side < threads) side++;
    if (!kernel || side * side != threads || threads < 4 || threads > MOST || iterations < 1) {
        fprintf(stderr, "usage: communication_kernels KERNEL THREADS (4, 16, 64) ITERATIONS\n");
        return 2;
    }
    pthread_t other[MOST];
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int t = 1; t < threads; t++) pthread_create(&other[t], NULL, work, (void *)(size_t)t);
    work(NULL);
    for (int t = 1; t < threads; t++) pthread_join(other[t], NULL);
    return 0;
}
