/* What a process of the planned jobs does: its own block, a half of it for each of two threads. */
#ifndef PLAN_WORK_H
#define PLAN_WORK_H

#include <pthread.h>
#include <stdlib.h>

enum { N = 1 << 17 };
static double *block;

static void *work(void *half) {
    volatile double *mine = block + (half ? N / 2 : 0);
    for (int turn = 0; turn < 10; turn++)
        for (int i = 0; i < N / 2; i++) mine[i] = mine[i] * .5 + turn;
    return NULL;
}

/* The block, worked on; who calls frees it. */
static double *both(void) {
    block = calloc(N, sizeof *block);
    pthread_t other;
    pthread_create(&other, NULL, work, block);
    work(NULL);
    pthread_join(other, NULL);
    return block;
}

#endif
