/* Threads that run in real time, and others.
 *
 * real_time: a thread that its creator gives the scheduler for it, one that this makes in its turn, which has its
 * creator's, and one that runs as the main thread does. Each reads as much. Exits with 2 where real time is not allowed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>

enum { ROUNDS = 2000, WORDS = 512 };

static void *reads(void *unused) {
    static volatile uint64_t words[WORDS];
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < WORDS; i++) (void)words[i];
    return unused;
}

static void *makes(void *unused) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, reads, NULL)) return unused;
    reads(NULL);
    pthread_join(thread, NULL);
    return unused;
}

int main(void) {
    pthread_t first, last;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &(struct sched_param){.sched_priority = 1});
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    int error = pthread_create(&first, &attributes, makes, NULL);
    if (error) return error == EPERM ? 2 : 1;
    pthread_join(first, NULL);
    if (pthread_create(&last, NULL, reads, NULL)) return 1;
    pthread_join(last, NULL);
    return 0;
}
