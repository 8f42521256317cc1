/* Threads that come and go.
 *
 *     online_churn many COUNT SECONDS     COUNT threads at once that sleep and now and then touch their page
 *     online_churn busy COUNT SECONDS     COUNT threads at once that run all the time
 *     online_churn brief COUNT USEC       COUNT threads one after the other, each USEC long
 *     online_churn bind SECONDS           a thread that binds itself to its first and its last cpu in turn
 *
 * Prints a checksum that does not depend on how it went.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned char *pages;
static double seconds;
static volatile sig_atomic_t told_to_end; /* by SIGTERM: then it ends as it would later */
static long usec;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *sleeper(void *argument) {
    long which = (long)(intptr_t)argument;
    double end = now() + seconds;
    while (now() < end && !told_to_end) {
        pages[which * 4096] = (unsigned char)which;
        usleep(100000);
    }
    return NULL;
}

static void *worker(void *argument) {
    double end = now() + seconds;
    while (now() < end && !told_to_end) pages[(intptr_t)argument * 4096]++;
    pages[(intptr_t)argument * 4096] = (unsigned char)(intptr_t)argument;
    return NULL;
}

static void *brief(void *argument) {
    long which = (long)(intptr_t)argument;
    pages[which % 64 * 4096] ^= (unsigned char)which;
    usleep((useconds_t)usec);
    return NULL;
}

static void *binder(void *argument) {
    cpu_set_t all, one;
    (void)argument;
    sched_getaffinity(0, sizeof all, &all);
    double end = now() + seconds;
    for (int turn = 0; now() < end && !told_to_end; turn++) {
        int first = 0, last = 0;
        for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--)
            if (CPU_ISSET(cpu, &all)) {
                first = cpu;
                last = last ? last : cpu;
            }
        CPU_ZERO(&one);
        CPU_SET(turn % 2 ? first : last, &one);
        sched_setaffinity(0, sizeof one, &one);
        usleep(20000);
    }
    return NULL;
}

static long checksum(long count) {
    long sum = 0;
    for (long i = 0; i < count; i++) sum = sum * 31 + pages[i * 4096];
    return sum;
}

static void tell_to_end(int number) {
    (void)number;
    told_to_end = 1;
}

int main(int argc, char **argv) {
    signal(SIGTERM, tell_to_end);
    const char *how = argc > 2 ? argv[1] : "";
    long count = argc > 2 ? atol(argv[2]) : 0;
    pages = calloc(2048, 4096);
    pthread_t *threads = calloc(2048, sizeof *threads);
    if (!pages || !threads || count < 0 || count > 1000000) return 2;
    bool sleeps = !strcmp(how, "many");
    if ((sleeps || !strcmp(how, "busy")) && argc > 3 && count <= 2048) {
        seconds = atof(argv[3]);
        for (long i = 0; i < count; i++)
            if (pthread_create(&threads[i], NULL, sleeps ? sleeper : worker, (void *)(intptr_t)i)) return 1;
        for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    } else if (!strcmp(how, "brief") && argc > 3) {
        usec = atol(argv[3]);
        for (long i = 0; i < count; i++) {
            if (pthread_create(&threads[0], NULL, brief, (void *)(intptr_t)i)) return 1;
            pthread_join(threads[0], NULL);
        }
    } else if (!strcmp(how, "bind")) {
        seconds = (double)count;
        if (pthread_create(&threads[0], NULL, binder, NULL)) return 1;
        pthread_join(threads[0], NULL);
    } else {
        return 2;
    }
    printf("checksum %ld\n", checksum(2048));
    return 0;
}
