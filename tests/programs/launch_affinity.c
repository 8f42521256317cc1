/* Prints how many cpus it may use as it sees it; with an argument it binds itself to that cpu first. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    cpu_set_t mask, again;
    if (argc > 1) {
        CPU_ZERO(&mask);
        CPU_SET(atoi(argv[1]), &mask);
        if (sched_setaffinity(0, sizeof mask, &mask)) return 1;
    }
    if (sched_getaffinity(0, sizeof mask, &mask)) return 2;
    if (pthread_getaffinity_np(pthread_self(), sizeof again, &again)) return 3;
    printf("%d %d\n", CPU_COUNT(&mask), CPU_EQUAL(&mask, &again));
    return 0;
}
