/* Main makes WIDTH threads, each of them makes DEPTH threads at the same time as the others: creators race, but who
 * made whom as which child is fixed. Every thread takes its path as its name. Says "ready" when all live, and ends
 * when its input does.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int width, depth;
static pthread_barrier_t all_live, may_end;

static void name_self(const char *format, int a, int b) {
    char name[16];
    snprintf(name, sizeof name, format, a, b);
    pthread_setname_np(pthread_self(), name);
}

static void *leaf(void *argument) {
    long both = (long)argument;
    name_self("0.%d.%d", (int)(both >> 16), (int)(both & 0xffff));
    char *volatile block = malloc(100000);
    memset(block, 1, 100000);
    pthread_barrier_wait(&all_live);
    pthread_barrier_wait(&may_end);
    free(block);
    return NULL;
}

static void *branch(void *argument) {
    long number = (long)argument;
    pthread_t *made = calloc((size_t)depth, sizeof *made);
    name_self("0.%d", (int)number, 0);
    for (long i = 0; i < depth; i++) pthread_create(&made[i], NULL, leaf, (void *)(number << 16 | (i + 1)));
    pthread_barrier_wait(&all_live);
    pthread_barrier_wait(&may_end);
    for (int i = 0; i < depth; i++) pthread_join(made[i], NULL);
    free(made);
    return NULL;
}

int main(int argc, char **argv) {
    width = argc > 1 ? atoi(argv[1]) : 4;
    depth = argc > 2 ? atoi(argv[2]) : 3;
    pthread_t *made = calloc((size_t)width, sizeof *made);
    unsigned threads = (unsigned)(1 + width + width * depth);
    pthread_barrier_init(&all_live, NULL, threads);
    pthread_barrier_init(&may_end, NULL, threads);
    for (long i = 0; i < width; i++) pthread_create(&made[i], NULL, branch, (void *)(i + 1));
    pthread_barrier_wait(&all_live);
    pthread_setname_np(pthread_self(), "0");
    printf("ready %d\n", getpid());
    fflush(stdout);
    while (getchar() != EOF) {}
    pthread_barrier_wait(&may_end);
    for (int i = 0; i < width; i++) pthread_join(made[i], NULL);
    free(made);
    return 0;
}
