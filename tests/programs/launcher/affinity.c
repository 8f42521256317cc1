/* Prints how many cpus it may use as it sees it; with arguments it binds itself to the first of these cpus first, then to
 * the first two of them, and so on.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    cpu_set_t mask, again;
    CPU_ZERO(&mask);
    for (int i = 1; i < argc; i++) {
        CPU_SET(atoi(argv[i]), &mask);
        if (sched_setaffinity(0, sizeof mask, &mask)) return 1;
    }
    if (sched_getaffinity(0, sizeof mask, &mask)) return 2;
    if (pthread_getaffinity_np(pthread_self(), sizeof again, &again)) return 3;
    printf("%d %d\n", CPU_COUNT(&mask), CPU_EQUAL(&mask, &again));
    return 0;
}
