/* Parts in which one thread works while the others sleep, and parts in which all of them work, in turn.
 *
 *     alone_then_all [rounds=400] [accesses of each part=300] [workers=4]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int rounds = 400, accesses = 300, workers = 4;
static pthread_barrier_t begins, ends;

static void touch(int count) {
    volatile long words[64] = {0};
    for (int i = 0; i < count; i++) words[i % 64] = i;
}

static void *works(void *unused) {
    for (int round = 0; round < rounds; round++) {
        pthread_barrier_wait(&begins);
        touch(accesses);
        pthread_barrier_wait(&ends);
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc > 1) rounds = atoi(argv[1]);
    if (argc > 2) accesses = atoi(argv[2]);
    if (argc > 3) workers = atoi(argv[3]);
    pthread_t threads[64];
    if (workers < 1 || workers > 64) return 1;
    pthread_barrier_init(&begins, NULL, (unsigned)workers + 1);
    pthread_barrier_init(&ends, NULL, (unsigned)workers + 1);
    for (int i = 0; i < workers; i++) pthread_create(&threads[i], NULL, works, NULL);
    for (int round = 0; round < rounds; round++) {
        touch(accesses);
        pthread_barrier_wait(&begins);
        pthread_barrier_wait(&ends);
    }
    for (int i = 0; i < workers; i++) pthread_join(threads[i], NULL);
    return 0;
}
