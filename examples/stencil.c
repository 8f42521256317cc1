/* A 1-D heat stencil whose neighbours are not consecutive threads.
 *
 *     stencil [threads=8] [cells per strip=4096] [iterations=200]
 *
 * The rod is cut into one strip a thread, and thread t (0 is the main thread) works on strip_of(t): neighbouring strips
 * belong to threads with ids far apart, so that placing threads in order of their ids separates them. Every iteration
 * a thread reads the border zones of both neighbours, then updates its strip from one buffer into the other. The main
 * thread initialises all memory alone, so that by first touch every page lies on its node.
 *
 * There are two phases: in the first all strips cost the same, in the second odd strips are relaxed three times an
 * iteration. Communication is therefore between neighbouring strips only, load differs, and the best placement puts
 * runs of neighbouring strips on one node, with as many odd as even ones.
 *
 * The checksum printed at the end does not depend on where threads and memory were.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BORDER = 1024, REFINED_PASSES = 3, BLOCK = 16384 };

static long threads = 8, cells = 4096, iterations = 200;
static double *buffers[2]; /* the rod twice: strips one after another */
static double *halo_sums;  /* one cache line a thread */
static pthread_barrier_t barrier;

/* Even ids take the first strips, odd ids the rest: neighbours' ids differ by two, or lie in the other half. */
static long strip_of(long thread) {
    long evens = (threads + 1) / 2;
    return thread % 2 == 0 ? thread / 2 : evens + thread / 2;
}

/* Read both neighbours' border zones, as codes with wide halos do. */
static double read_halo(const double *from, long strip) {
    double sum = 0.0;
    long first = strip * cells, last = first + cells, width = cells < BORDER ? cells : BORDER;
    if (strip > 0)
        for (long i = first - width; i < first; i++) sum += from[i];
    if (strip + 1 < threads)
        for (long i = last; i < last + width; i++) sum += from[i];
    return sum;
}

/* One pass over the inside of a strip; the two cells at its ends stay as they are. */
static void relax(const double *from, double *to, long strip) {
    long first = strip * cells, last = first + cells;
    to[first] = from[first];
    for (long i = first + 1; i < last - 1; i++) to[i] = 0.25 * from[i - 1] + 0.5 * from[i] + 0.25 * from[i + 1];
    to[last - 1] = from[last - 1];
}

static void *work(void *argument) {
    long thread = (long)argument, strip = strip_of(thread);
    double halo = 0.0;
    for (long iteration = 0; iteration < iterations; iteration++) {
        const double *from = buffers[iteration % 2];
        double *to = buffers[(iteration + 1) % 2];
        int refined = iteration >= iterations / 2 && strip % 2 == 1;
        halo += read_halo(from, strip);
        for (int pass = 0; pass < (refined ? REFINED_PASSES : 1); pass++) relax(from, to, strip);
        pthread_barrier_wait(&barrier);
    }
    halo_sums[thread * 8] = halo;
    return NULL;
}

static long argument(int argc, char **argv, int index, long otherwise, long least, long most) {
    if (index >= argc) return otherwise;
    char *end;
    long value = strtol(argv[index], &end, 10);
    if (*argv[index] == '\0' || *end != '\0' || value < least || value > most) {
        fprintf(stderr, "stencil: argument %d must be a number from %ld to %ld\n", index, least, most);
        exit(2);
    }
    return value;
}

static void *blocks(size_t bytes) {
    /* Whole blocks of their own, so that strips of different threads never share a page. */
    void *memory = aligned_alloc(BLOCK, (bytes + BLOCK - 1) / BLOCK * BLOCK);
    if (!memory) {
        fprintf(stderr, "stencil: out of memory\n");
        exit(1);
    }
    return memory;
}

int main(int argc, char **argv) {
    threads = argument(argc, argv, 1, threads, 1, 1024);
    cells = argument(argc, argv, 2, cells, 3, 1L << 24);
    iterations = argument(argc, argv, 3, iterations, 1, 1L << 30);

    size_t all = (size_t)(threads * cells);
    for (int b = 0; b < 2; b++) buffers[b] = blocks(all * sizeof **buffers);
    halo_sums = blocks((size_t)threads * 64);
    for (size_t i = 0; i < all; i++) buffers[0][i] = buffers[1][i] = (double)(i % 97);
    memset(halo_sums, 0, (size_t)threads * 64);

    pthread_t *others = calloc((size_t)threads, sizeof *others);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long t = 1; t < threads; t++)
        if (!others || pthread_create(&others[t], NULL, work, (void *)t) != 0) {
            fprintf(stderr, "stencil: cannot start thread %ld\n", t);
            return 1;
        }
    work((void *)0L);
    for (long t = 1; t < threads; t++) pthread_join(others[t], NULL);
    free(others);

    double sum = 0.0;
    for (size_t i = 0; i < all; i++) sum += buffers[iterations % 2][i] * (double)(i % 13 + 1);
    for (long t = 0; t < threads; t++) sum += halo_sums[t * 8];
    printf("checksum %.6f\n", sum);
    return 0;
}
