/* Threads that claim their work in an order that is not that of their creation, and work until one of them is moved.
 *
 *     claims_until_moved THREADS KIB TURN ROUNDS
 *
 * Each fills one part of the memory and goes through it until some thread finds itself on another cpu than it began on,
 * and ROUNDS times more; fails where none does. 0: only a few times, for a recording. TURN: by how much the parts are
 * shifted.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64, RECORDED = 8, PATIENCE = 20000 };

static long threads, words, turn, rounds;
static uint64_t *memory;
static atomic_bool moved;

static void *work(void *argument) {
    uint64_t *own = memory + ((long)(intptr_t)argument + turn) % threads * words, sum = 0;
    const int first = sched_getcpu(); /* not its affinity: our library tells a program that which it chose itself */
    for (long all = 0, left = rounds ? rounds : RECORDED; left > 0; all++) {
        for (long i = 0; i < words; i++) sum += own[i] += (uint64_t)i;
        if (sched_getcpu() != first) atomic_store(&moved, true);
        if (!rounds || atomic_load(&moved)) left--;
        if (all > PATIENCE) exit(1);
    }
    return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    threads = atol(argv[1]), words = atol(argv[2]) * 1024 / (long)sizeof *memory;
    turn = atol(argv[3]), rounds = atol(argv[4]);
    if (threads < 1 || threads > MOST || words < 1 || turn < 0 || rounds < 0) return 2;
    pthread_t ids[MOST];
    memory = calloc((size_t)(threads * words), sizeof *memory);
    if (!memory) return 1;
    for (long i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, (void *)(intptr_t)i);
    for (long i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    free(memory);
    return 0;
}
