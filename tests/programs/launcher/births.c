/* Births and ends that happen at once, for who follows them: threads fork and make threads at the same time, children
 * are killed while they do, one thread execs among others, and the main thread ends first. Prints "done".
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 30 };
static atomic_int *born; /* threads, in our children as well */

static void *nothing(void *argument) { return argument; }

static void until_born(int many) {
    for (int before = *born; *born - before < many;) sched_yield();
}

static void *births(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) == 0) pthread_join(thread, NULL);
        ++*born;
        pid_t child = i % 5 ? -1 : fork();
        if (child == 0) _exit(0);
        if (child > 0) waitpid(child, NULL, 0);
    }
    return argument;
}

static void *forever(void *argument) {
    while (births(argument) == argument) {}
    return NULL;
}

static void all(void *(*work)(void *), pthread_t made[THREADS]) {
    for (int i = 0; i < THREADS; i++) pthread_create(&made[i], NULL, work, NULL);
}

static void killed_children(pthread_t made[THREADS]) {
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0) {
            all(forever, made);
            pause();
        }
        until_born(20 * i);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
}

static void *leave(void *main_thread) {
    char *next[] = {"births", "after", NULL};
    pthread_t made[THREADS];
    pthread_join(*(pthread_t *)main_thread, NULL);
    all(forever, made);
    until_born(20);
    execv("/proc/thread-self/exe", next); /* the main thread, which has ended, knows of no program any more */
    _exit(1);
}

int main(int argc, char **argv) {
    (void)argv;
    static pthread_t self;
    pthread_t made[THREADS], last;
    self = pthread_self();
    born = mmap(NULL, sizeof *born, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (born == MAP_FAILED) return 9;
    all(births, made);
    for (int i = 0; i < THREADS; i++) pthread_join(made[i], NULL);
    if (argc > 1) {
        puts("done");
        return 0;
    }
    killed_children(made);
    pthread_create(&last, NULL, leave, &self);
    pthread_exit(NULL);
}
