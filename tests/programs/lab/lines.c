/*
 * stream CPU NODE BYTES PASSES: reads each cache line of memory on a node once a pass.
 * turns CPU CPU ROUNDS: two threads write one line in turns, each as soon as it has seen the other's write.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE 64
#define MPOL_BIND 2

static _Alignas(LINE) atomic_long turn;
static long rounds;

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) abort();
}

static int stream(int cpu, int node, size_t bytes, long passes) {
    pin(cpu);
    unsigned long mask = 1ul << node;
    volatile char *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED || syscall(SYS_mbind, data, bytes, MPOL_BIND, &mask, 64ul, 0)) abort();
    for (size_t at = 0; at < bytes; at += 4096) data[at] = 1;
    for (long pass = 0; pass < passes; pass++)
        for (size_t at = 0; at < bytes; at += LINE) (void)data[at];
    return 0;
}

static void *take_turns(void *argument) {
    long mine = (long)argument >> 16;
    pin((int)((long)argument & 0xffff));
    for (long round = 0; round < rounds; round++) {
        while (atomic_load_explicit(&turn, memory_order_acquire) != 2 * round + mine) sched_yield();
        atomic_store_explicit(&turn, 2 * round + mine + 1, memory_order_release);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc == 6 && !strcmp(argv[1], "stream"))
        return stream(atoi(argv[2]), atoi(argv[3]), strtoul(argv[4], NULL, 10), atol(argv[5]));
    if (argc != 5) return 2;
    pthread_t other;
    rounds = atol(argv[4]);
    if (pthread_create(&other, NULL, take_turns, (void *)(atol(argv[3]) | 1 << 16))) return 1;
    take_turns((void *)atol(argv[2]));
    pthread_join(other, NULL);
    return 0;
}
