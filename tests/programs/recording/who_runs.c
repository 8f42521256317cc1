/* Who runs at a time: two threads in turns of which the other sleeps, one that works all the time, one that polls
 * until it is done, and the main thread, which waits for all of them.
 *
 *     who_runs [rounds=400] [accesses of a turn=2000]
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static int rounds = 400, accesses = 2000;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int whose;
static atomic_int done;

static void touch(int count) {
    volatile long words[64] = {0};
    for (int i = 0; i < count; i++) words[i % 64] = i;
}

static void *in_turns(void *argument) {
    int own = (int)(long)argument;
    for (int round = 0; round < rounds; round++) {
        pthread_mutex_lock(&lock);
        while (whose != own) pthread_cond_wait(&changed, &lock);
        touch(accesses);
        whose = !own;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *works(void *unused) {
    for (int round = 0; round < 2 * rounds; round++) touch(accesses);
    done = 1;
    return unused;
}

static void *polls(void *unused) {
    while (!done) sched_yield();
    return unused;
}

int main(int argc, char **argv) {
    if (argc > 1) rounds = atoi(argv[1]);
    if (argc > 2) accesses = atoi(argv[2]);
    pthread_t threads[4];
    pthread_create(&threads[0], NULL, in_turns, (void *)0);
    pthread_create(&threads[1], NULL, in_turns, (void *)1);
    pthread_create(&threads[2], NULL, works, NULL);
    pthread_create(&threads[3], NULL, polls, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
