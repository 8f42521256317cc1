/* Threads that write the same lines all the time, and memory of their own between; then one such line only.
 *
 *     contended_lines [lines=8] [rounds=2000] [then=0] [threads=4]
 */
#include <pthread.h>
#include <stdlib.h>

static int lines = 8, rounds = 2000, then = 0, threads = 4;
static volatile long shared[64][8] __attribute__((aligned(64)));
static pthread_barrier_t begins;

static void *works(void *unused) {
    volatile long own[64] = {0};
    pthread_barrier_wait(&begins);
    for (int round = 0; round < rounds + then; round++) {
        int contended = round < rounds ? lines : 1;
        for (int line = 0; line < contended; line++) shared[line][0] = round;
        for (int i = 0; i < 100; i++) own[i % 64] = i;
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc > 1) lines = atoi(argv[1]);
    if (argc > 2) rounds = atoi(argv[2]);
    if (argc > 3) then = atoi(argv[3]);
    if (argc > 4) threads = atoi(argv[4]);
    pthread_t made[64];
    if (lines > 64 || threads < 1 || threads > 64) return 1;
    pthread_barrier_init(&begins, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) pthread_create(&made[i], NULL, works, NULL);
    for (int i = 0; i < threads; i++) pthread_join(made[i], NULL);
    return 0;
}
