/* ROUNDS of COUNT threads each, which all live at once and end before the next round. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

enum { MOST = 64 };

static pthread_barrier_t all;

static void *meet(void *unused) {
    pthread_barrier_wait(&all);
    return unused;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1, count = argc > 2 ? atoi(argv[2]) : 1;
    pthread_t made[MOST];
    for (int round = 0; round < rounds; round++) {
        pthread_barrier_init(&all, NULL, (unsigned)count);
        for (int i = 0; i < count; i++) pthread_create(&made[i], NULL, meet, NULL);
        for (int i = 0; i < count; i++) pthread_join(made[i], NULL);
        pthread_barrier_destroy(&all);
    }
    return 0;
}
