/* Births and ends that happen at once, for who follows them: threads fork and make threads at the same time, children
 * are killed while they do, one thread execs among others, and the main thread ends first. Prints "done".
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 30 };

static void *nothing(void *argument) { return argument; }

static void *births(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) == 0) pthread_join(thread, NULL);
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
        usleep(3000 * (unsigned)i);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
}

static void *leave(void *main_thread) {
    char *next[] = {"births", "after", NULL};
    pthread_t made[THREADS];
    pthread_join(*(pthread_t *)main_thread, NULL);
    all(forever, made);
    usleep(3000);
    execv("/proc/thread-self/exe", next); /* the main thread, which has ended, knows of no program any more */
    _exit(1);
}

int main(int argc, char **argv) {
    (void)argv;
    static pthread_t self;
    pthread_t made[THREADS], last;
    self = pthread_self();
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
