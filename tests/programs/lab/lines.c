/*
 * stream CPU NODE BYTES PASSES: reads each cache line of memory on a node once a pass.
 * own CPU CPU BYTES PASSES: two threads do so with so many bytes each, which each has touched first.
 * turns CPU CPU ROUNDS: two threads write one line in turns, each as soon as it has seen the other's write.
 * contend CPU CPU ROUNDS: two threads write one line so often each, at the same time.
 * moved CPU CPU BYTES: the first cpu writes each line of so much memory, the second moves it to its node and reads it.
 * filled CPU CPU BYTES: on the first the kernel reads a file into memory, of which the second reads each line.
 * halves CPU CPU BYTES: the same by halves of lines, of which the second reads each before the next one comes.
 * told CPU CPU BYTES: the same, but the second reads nothing.
 * taken CPU CPU BYTES: the first writes each line of memory, which the second has the kernel write to a file.
 * again CPU CPU BYTES: the first writes each line of memory; the second gives it back, and writes as much that is new.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE 64
#define MPOL_BIND 2
#define MPOL_MF_MOVE 2

static _Alignas(LINE) atomic_long turn;
static long rounds, passes;
static size_t bytes;

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)!sched_setaffinity(0, sizeof set, &set); /* fails where it is emulated on a machine without this cpu */
}

static char *map_memory(void) {
    char *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) abort();
    return data;
}

static void *stream(int cpu, int node) {
    pin(cpu);
    unsigned long mask = 1ul << node;
    volatile char *data = map_memory();
    if (node >= 0 && syscall(SYS_mbind, data, bytes, MPOL_BIND, &mask, 64ul, 0)) abort();
    for (size_t at = 0; at < bytes; at += 4096) data[at] = 1;
    for (long pass = 0; pass < passes; pass++)
        for (size_t at = 0; at < bytes; at += LINE) (void)data[at];
    return NULL;
}

static void *stream_own(void *argument) { return stream((int)((long)argument & 0xffff), -1); }

static void *take_turns(void *argument) {
    long mine = (long)argument >> 16;
    pin((int)((long)argument & 0xffff));
    for (long round = 0; round < rounds; round++) {
        while (atomic_load_explicit(&turn, memory_order_acquire) != 2 * round + mine) sched_yield();
        atomic_store_explicit(&turn, 2 * round + mine + 1, memory_order_release);
    }
    return NULL;
}

static _Alignas(LINE) atomic_long ready;

static void *contend(void *argument) {
    pin((int)((long)argument & 0xffff));
    atomic_fetch_add(&ready, 1);
    while (atomic_load(&ready) < 2) sched_yield();
    for (long round = 0; round < rounds; round++) atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
    return NULL;
}

static int move_to(int cpu, char *data) {
    unsigned node;
    pin(cpu);
    if (syscall(SYS_getcpu, NULL, &node, NULL)) return 1;
    unsigned long mask = 1ul << node;
    return syscall(SYS_mbind, data, bytes, MPOL_BIND, &mask, 64ul, MPOL_MF_MOVE) != 0;
}

static char *write_lines(char *data) {
    for (size_t at = 0; at < bytes; at += LINE) data[at] = 1;
    return data;
}

static void read_lines(volatile char *data) {
    for (size_t at = 0; at < bytes; at += LINE) (void)data[at];
}

static int moved(int first, int second) {
    pin(first);
    char *data = write_lines(map_memory());
    if (move_to(second, data)) return 1;
    read_lines(data);
    return 0;
}

static int filled(int first, int second) {
    char *data = map_memory();
    int file = memfd_create("data", 0);
    if (file < 0 || ftruncate(file, (off_t)bytes)) return 1;
    pin(first);
    if (read(file, data, bytes) != (ssize_t)bytes) return 1;
    pin(second);
    read_lines(data);
    return 0;
}

static _Alignas(LINE) atomic_long asked;
static _Alignas(LINE) atomic_long answered;

static void await(atomic_long *number, long wanted) {
    while (atomic_load_explicit(number, memory_order_acquire) != wanted) sched_yield();
}

struct halves {
    char *data;
    int cpu;
    bool reads;
};

static void *read_halves(void *argument) {
    struct halves halves = *(struct halves *)argument;
    pin(halves.cpu);
    for (size_t half = 0; half < bytes / (LINE / 2); half++) {
        await(&asked, (long)half + 1);
        if (halves.reads) (void)((volatile char *)halves.data)[half * (LINE / 2)];
        atomic_store_explicit(&answered, (long)half + 1, memory_order_release);
    }
    return NULL;
}

static int halves(int first, int second, bool reads) {
    struct halves halves = {map_memory(), second, reads};
    int file = memfd_create("data", 0);
    pthread_t other;
    if (file < 0 || ftruncate(file, (off_t)bytes) || pthread_create(&other, NULL, read_halves, &halves)) return 1;
    pin(first);
    for (size_t half = 0; half < bytes / (LINE / 2); half++) {
        if (read(file, halves.data + half * (LINE / 2), LINE / 2) != LINE / 2) return 1;
        atomic_store_explicit(&asked, (long)half + 1, memory_order_release);
        await(&answered, (long)half + 1);
    }
    return pthread_join(other, NULL);
}

static int taken(int first, int second) {
    int file = memfd_create("data", 0);
    pin(first);
    char *data = write_lines(map_memory());
    pin(second);
    /* Where the kernel copies to is at another place in its word. */
    return write(file, "x", 1) != 1 || write(file, data, bytes) != (ssize_t)bytes;
}

static int again(int first, int second) {
    pin(first);
    char *data = write_lines(map_memory());
    pin(second);
    if (munmap(data, bytes)) return 1;
    write_lines(map_memory());
    return 0;
}

static int between(const char *how, int first, int second) {
    bytes = (size_t)rounds;
    if (!strcmp(how, "moved")) return moved(first, second);
    if (!strcmp(how, "filled")) return filled(first, second);
    if (!strcmp(how, "halves")) return halves(first, second, true);
    if (!strcmp(how, "told")) return halves(first, second, false);
    if (!strcmp(how, "taken")) return taken(first, second);
    return again(first, second);
}

int main(int argc, char **argv) {
    if (argc != 6 && argc != 5) return 2;
    void *(*work)(void *) = argc == 6 ? stream_own : strcmp(argv[1], "contend") ? take_turns : contend;
    pthread_t other;
    if (argc == 6) {
        bytes = strtoul(argv[4], NULL, 10);
        passes = atol(argv[5]);
    } else {
        rounds = atol(argv[4]);
    }
    if (work == take_turns && strcmp(argv[1], "turns")) return between(argv[1], atoi(argv[2]), atoi(argv[3]));
    if (!strcmp(argv[1], "stream")) return stream(atoi(argv[2]), atoi(argv[3])) != NULL;
    if (pthread_create(&other, NULL, work, (void *)(atol(argv[3]) | 1 << 16))) return 1;
    work((void *)atol(argv[2]));
    pthread_join(other, NULL);
    return 0;
}
