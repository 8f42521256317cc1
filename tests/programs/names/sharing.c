/* Two threads that count in one cache line, and use a field that a third filled: the lines that do it say so. */
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 2, N = 1 << 15 };

struct tally {
    long hits;
    long misses;
};

static struct tally tallies[THREADS] __attribute__((aligned(64)));
static double *field;

static void *work(void *argument) {
    long me = (long)argument, part = N / THREADS;
    for (long i = me * part; i < (me + 1) * part; i++) {
        if (field[i] > 0) /* line: foreign */
            ((volatile struct tally *)tallies)[me].hits++; /* line: transfers */
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    field = malloc(N * sizeof *field);
    for (long i = 0; i < N; i++) field[i] = 1;
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (long i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return tallies[0].hits + tallies[1].hits != N;
}
