/* Blocks that are asked for through functions that only pass them on: their callers are named. */
#include <stdlib.h>

enum { N = 20000 };

#define KEEP(memory) __asm__ volatile("" : : "g"(memory) : "memory")

struct particle {
    double at[3];
    long id;
};

struct system {
    struct particle *particles;
    long count;
};

static void *xmalloc(size_t bytes) {
    void *block = malloc(bytes);
    if (!block) abort();
    return block;
}

static void *pool_alloc(size_t bytes) { return xmalloc((bytes + 63) & ~(size_t)63); }

__attribute__((noinline)) static float *new_row(size_t count) {
    float *row = pool_alloc(count * sizeof *row); /* region: row float[] */
    KEEP(row);
    return row;
}

static inline __attribute__((always_inline)) void *always(size_t bytes) { return calloc(1, bytes); }

int main(void) {
    struct system here;
    struct system *system = &here;
    KEEP(system);
    double *grid = xmalloc(N * sizeof *grid); /* region: grid double[] */
    double *next = pool_alloc(N * sizeof *next); /* region: next double[] */
    system->particles = xmalloc(N * sizeof *system->particles); /* region: particles particle[] */
    int *counts = always(N * sizeof *counts); /* region: counts int[] */
    KEEP(grid);
    KEEP(next);
    KEEP(counts);
    return new_row(N) == NULL;
}
