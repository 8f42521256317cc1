/* Two programs of `benchmarks/small_recordings.py`: small_recordings grid|groups THREADS KIB ITERATIONS.
 *
 * One block that the main thread makes is cut into a tile of KIB each thread. On a grid, as square as can be and no wider
 * than high, a thread updates its tile and reads the borders of the tiles above, below, left and right of it; in groups of
 * four it updates its tile and reads the whole tiles of the others of its group.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 4, PARTS = 8 };

static long threads, words, iterations, wide;
static double *tiles;
static pthread_barrier_t barrier;
static int grid;

static double take(long tile, long from, long count) {
    double sum = 0;
    for (long i = from; i < from + count; i++) sum += tiles[tile * words + i];
    return sum;
}

static double borders(long thread) {
    long row = thread / wide, column = thread % wide, count = words / PARTS;
    double sum = 0;
    if (row > 0) sum += take(thread - wide, words - count, count);
    if (thread + wide < threads) sum += take(thread + wide, 0, count);
    if (column > 0) sum += take(thread - 1, words / 2, count);
    if (column + 1 < wide) sum += take(thread + 1, words / 2 - count, count);
    return sum;
}

static double others(long thread) {
    double sum = 0;
    long first = thread / GROUP * GROUP;
    for (long other = first; other < first + GROUP && other < threads; other++)
        if (other != thread) sum += take(other, 0, words / PARTS * 2);
    return sum;
}

static void *work(void *argument) {
    long thread = (long)argument, count = words;
    double *own = tiles + thread * words;
    for (long step = 0; step < iterations; step++) {
        double sum = grid ? borders(thread) : others(thread);
        pthread_barrier_wait(&barrier);
        for (long i = 1; i < count; i++) own[i] = 0.5 * own[i] + 0.25 * own[i - 1] + sum * 1e-9;
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv) {
    grid = argc > 1 && !strcmp(argv[1], "grid");
    threads = argc > 2 ? atol(argv[2]) : 0;
    words = argc > 3 ? atol(argv[3]) * 128 : 0;
    iterations = argc > 4 ? atol(argv[4]) : 0;
    if (threads < 2 || threads > 1024 || words < PARTS || iterations < 1) return 2;
    for (wide = 1; (wide + 1) * (wide + 1) <= threads; wide++) {}
    while (threads % wide) wide--;
    tiles = malloc((size_t)(threads * words) * sizeof *tiles);
    if (!tiles) return 1;
    for (long i = 0; i < threads * words; i++) tiles[i] = (double)(i % 97);
    pthread_t *other = calloc((size_t)threads, sizeof *other);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long t = 1; t < threads; t++)
        if (!other || pthread_create(&other[t], NULL, work, (void *)t)) return 1;
    work(NULL);
    for (long t = 1; t < threads; t++) pthread_join(other[t], NULL);
    double sum = 0;
    for (long i = 0; i < threads * words; i++) sum += tiles[i];
    printf("checksum %.6f\n", sum);
    return 0;
}
