/* Threads that hand work to one another by a mutex and conditions, and meet at barriers.
 *
 * usage: handed_on THREADS; prints how much each did, which depends on the order in which they ran.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 5
#define JOBS 40

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static int waiting, left;
static long done[64], shared[4096];

static void *work(void *which) {
    long me = (long)which;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        for (;;) {
            pthread_mutex_lock(&mutex);
            while (waiting == 0 && left > 0) pthread_cond_wait(&changed, &mutex);
            if (waiting == 0 && left == 0) {
                pthread_mutex_unlock(&mutex);
                break;
            }
            waiting--;
            pthread_cond_broadcast(&changed);
            pthread_mutex_unlock(&mutex);
            for (long i = 0; i < 500; i++) shared[(me * 64 + i * 8) % 4096] += i;
            done[me]++;
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv) {
    long threads = argc > 1 ? atol(argv[1]) : 2;
    pthread_t made[64];
    pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    for (long i = 0; i < threads; i++) pthread_create(&made[i], NULL, work, (void *)i);
    for (int round = 0; round < ROUNDS; round++) {
        left = JOBS;
        pthread_barrier_wait(&barrier);
        for (int job = 0; job < JOBS; job++) {
            pthread_mutex_lock(&mutex);
            while (waiting >= 4) pthread_cond_wait(&changed, &mutex);
            waiting++;
            left--;
            pthread_cond_broadcast(&changed);
            pthread_mutex_unlock(&mutex);
        }
        pthread_barrier_wait(&barrier);
    }
    for (long i = 0; i < threads; i++) {
        pthread_join(made[i], NULL);
        printf("%ld\n", done[i]);
    }
    return 0;
}
