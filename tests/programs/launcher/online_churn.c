/* Threads that come and go, until the program's input ends.
 *
 *     online_churn many COUNT     COUNT threads at once that sleep and now and then touch their page
 *     online_churn busy COUNT     COUNT threads at once that run all the time, and read their neighbour's page as well
 *     online_churn brief COUNT    threads one after the other, COUNT of them or more
 *     online_churn bind COUNT     threads that bind themselves to their first and their last cpu in turn
 *
 * Prints a checksum that does not depend on how it went.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 2048, PAGE = 4096, SEVERAL = 64, LONG_USEC = 100000, SHORT_USEC = 5000 };
static volatile unsigned char *pages;
static atomic_bool told_to_end;

static void *sleeper(void *argument) {
    long which = (long)argument;
    do {
        pages[which * PAGE] = (unsigned char)which;
        usleep(LONG_USEC);
    } while (!told_to_end);
    return NULL;
}

static void *worker(void *argument) {
    long which = (long)argument;
    while (!told_to_end) pages[which * PAGE]++, (void)pages[(which ^ 1) * PAGE];
    pages[which * PAGE] = (unsigned char)which;
    return NULL;
}

static void *brief(void *argument) {
    long which = (long)argument % SEVERAL;
    pages[which * PAGE] = (unsigned char)which;
    usleep(SHORT_USEC);
    return NULL;
}

static void *binder(void *argument) {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    int first = CPU_SETSIZE, last = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all)) first = cpu < first ? cpu : first, last = cpu;
    for (int turn = 0; !told_to_end; turn++) {
        CPU_ZERO(&one);
        CPU_SET(turn % 2 ? first : last, &one);
        sched_setaffinity(0, sizeof one, &one);
        usleep(SHORT_USEC);
    }
    return argument;
}

static int input_has_ended(int patience) {
    char byte;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, patience) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static int together(void *(*work)(void *), long count) {
    static pthread_t threads[MOST];
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 1;
    while (!input_has_ended(-1)) {}
    told_to_end = 1;
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    return 0;
}

static int one_by_one(long count) {
    pthread_t thread;
    for (long i = 0; i < count || !input_has_ended(0); i++)
        if (pthread_create(&thread, NULL, brief, (void *)i) || pthread_join(thread, NULL)) return 1;
    return 0;
}

int main(int argc, char **argv) {
    const char *how = argc > 2 ? argv[1] : "";
    long count = argc > 2 ? atol(argv[2]) : 0;
    unsigned long sum = 0;
    void *(*work)(void *) = strcmp(how, "many") == 0   ? sleeper
                            : strcmp(how, "busy") == 0 ? worker
                            : strcmp(how, "bind") == 0 ? binder
                                                       : NULL;
    pages = calloc(MOST, PAGE);
    if (!pages || count < 1 || count > MOST || (!work && strcmp(how, "brief") != 0)) return 2;
    if (work ? together(work, count) : one_by_one(count)) return 1;
    for (long i = 0; i < MOST; i++) sum = sum * 31 + pages[i * PAGE];
    printf("checksum %lu\n", sum);
    return 0;
}
