/* Threads take their work by a lock, in an order that the argument turns: creation order is not the role. Each takes
 * its name from its part of the memory and uses it; says "ready" when all have, and ends when its input does. With a
 * second argument it stops its parent first, so that this looks at nothing before another has seen "ready" and wakes it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, PART = 64 * 4096 };

static char *memory;
static int turn, made;
static sem_t placed;
static pthread_barrier_t all_ready, may_end;

static void *work(void *unused) {
    int place = made++; /* one thread is made at a time: its place in the order of creation */
    sem_post(&placed);
    int role = (place * (turn ? 3 : 1) + turn) % THREADS;
    char name[16];
    snprintf(name, sizeof name, "role %d", role);
    pthread_setname_np(pthread_self(), name);
    memset(memory + role * PART, role + 1, PART);
    pthread_barrier_wait(&all_ready);
    pthread_barrier_wait(&may_end);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    turn = argc > 1 ? atoi(argv[1]) : 0;
    if (argc > 2) kill(getppid(), SIGSTOP);
    sem_init(&placed, 0, 0);
    memory = malloc(THREADS * PART);
    pthread_barrier_init(&all_ready, NULL, THREADS + 1);
    pthread_barrier_init(&may_end, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, NULL);
        sem_wait(&placed);
    }
    pthread_barrier_wait(&all_ready);
    printf("ready %d\n", getpid());
    fflush(stdout);
    while (getchar() != EOF) {}
    pthread_barrier_wait(&may_end);
    long sum = 0;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) sum += memory[i * PART];
    printf("%ld\n", sum);
    return 0;
}
