/* Threads that take a known number of lines from each other.
 *
 *     exchanged_lines pairs ROUNDS       pairs of four threads: one writes 1000 lines, the other reads 500 or all
 *     exchanged_lines readers THREADS    the main thread writes 100 lines, which all others read twice
 *     exchanged_lines filled THREADS     twice the kernel reads 100 lines for the main thread; each time all others read
 *                                        them, and then the main thread itself
 *     exchanged_lines again ROUNDS       memory that is given back and mapped anew between two threads
 *     exchanged_lines discarded ROUNDS   the same, but the memory stays mapped (MADV_DONTNEED)
 *     exchanged_lines child              a child reads what its parent's threads wrote
 *     exchanged_lines buffer THREADS     the main thread writes 8 MiB, which one thread after another reads
 *     exchanged_lines handed ROUNDS      on cpu 0 the main thread writes 8 MiB, which another reads on cpu 1; ROUNDS times
 *     exchanged_lines passed ROUNDS      the same of 64 MiB
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINES = 1000, LINE = 8, PAIRS = 2, MOST = 256, BUFFER = 1 << 17 /* lines */, LARGE = 8 };

static _Alignas(4096) volatile uint64_t lines[PAIRS][LINES * LINE];
static _Alignas(4096) volatile uint64_t buffer[LARGE * BUFFER * LINE];
static pthread_barrier_t barrier;
static long rounds;

static void write_lines(volatile uint64_t *memory, long count) {
    for (long i = 0; i < count; i++) memory[i * LINE] = (uint64_t)i;
}

static void read_lines(volatile uint64_t *memory, long count) {
    for (long i = 0; i < count; i++) (void)memory[i * LINE + 1];
}

static void *pair_member(void *number) {
    long me = (long)number, pair = me / 2;
    for (long round = 0; round < rounds; round++) {
        if (me % 2 == 0) write_lines(lines[pair], LINES);
        pthread_barrier_wait(&barrier);
        if (me % 2 == 1) read_lines(lines[pair], pair == 0 ? LINES / 2 : LINES);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void *reader(void *unused) {
    read_lines(lines[0], 100);
    read_lines(lines[0], 100);
    return unused;
}

static void *reader_of_each(void *unused) {
    for (long round = 0; round < 2; round++) {
        pthread_barrier_wait(&barrier);
        read_lines(lines[0], 100);
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

static int filled(long count) {
    FILE *file = tmpfile();
    pthread_t threads[MOST];
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, reader_of_each, NULL);
    for (long round = 0; round < 2; round++) {
        if (!file || ftruncate(fileno(file), 1 << 20)) return 1;
        if (pread(fileno(file), (void *)(uintptr_t)lines[0], 100 * LINE * sizeof **lines, 0) <= 0) return 1;
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        read_lines(lines[0], 100);
    }
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    return 0;
}

static void *emptier(void *unused) {
    read_lines(buffer, BUFFER);
    return unused;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)!sched_setaffinity(0, sizeof set, &set); /* fails where it is emulated on a machine without this cpu */
}

static void *each_time(void *size) {
    pin(1);
    for (long round = 0; round < rounds; round++) {
        pthread_barrier_wait(&barrier);
        read_lines(buffer, (long)size);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void handed(long size) {
    pthread_t thread;
    pin(0);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, each_time, (void *)size);
    for (long round = 0; round < rounds; round++) {
        write_lines(buffer, size);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    pthread_join(thread, NULL);
}

static void *writer(void *memory) {
    write_lines(memory, 50);
    return NULL;
}

/* So many threads at a time; argument: theirs, or NULL: the number of each. */
static void run(void *(*body)(void *), long count, void *argument) {
    pthread_t threads[MOST];
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, body, argument ? argument : (void *)i);
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

static void again(bool unmapped) {
    void *place = (void *)0x500000000000, *memory = NULL;
    for (long round = 0; round < rounds; round++) {
        if (unmapped || !memory)
            memory = mmap(place, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (memory != place) exit(1);
        run(writer, 1, memory);
        if (unmapped ? munmap(memory, 1 << 16) : madvise(memory, 1 << 16, MADV_DONTNEED)) exit(1);
    }
}

static void child(void) {
    run(writer, 1, (void *)(uintptr_t)lines[0]);
    pid_t pid = fork();
    if (pid == 0) {
        read_lines(lines[0], 50);
        run(reader, 1, NULL);
        write_lines(lines[1], 10);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    read_lines(lines[0], 50);
}

int main(int argc, char **argv) {
    long count = argc > 2 ? atol(argv[2]) : 0;
    rounds = count;
    if (argc > 1 && !strcmp(argv[1], "pairs")) {
        pthread_barrier_init(&barrier, NULL, 2 * PAIRS);
        run(pair_member, 2 * PAIRS, NULL);
    } else if (argc > 1 && !strcmp(argv[1], "readers") && count < MOST) {
        write_lines(lines[0], 100);
        run(reader, count, NULL);
    } else if (argc > 1 && !strcmp(argv[1], "filled") && count < MOST) {
        pthread_barrier_init(&barrier, NULL, (unsigned)count + 1);
        return filled(count);
    } else if (argc > 1 && !strcmp(argv[1], "again")) {
        again(true);
    } else if (argc > 1 && !strcmp(argv[1], "discarded")) {
        again(false);
    } else if (argc > 1 && !strcmp(argv[1], "buffer")) {
        write_lines(buffer, BUFFER);
        for (long i = 0; i < count; i++) run(emptier, 1, NULL);
    } else if (argc > 1 && !strcmp(argv[1], "handed")) {
        handed(BUFFER);
    } else if (argc > 1 && !strcmp(argv[1], "passed")) {
        handed(LARGE * BUFFER);
    } else if (argc > 1 && !strcmp(argv[1], "child")) {
        child();
    }
    return 0;
}
