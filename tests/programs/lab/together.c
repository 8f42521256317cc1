/* Pairs of threads that share memory until each pair is where its memory is, then change partners.
 *
 *     together [threads=4] [most seconds=240]
 *
 * Thread t writes its own block and its partner's: in the first part t and t + threads/2, in the second t and its
 * neighbour (t xor 1). The main thread makes all blocks, so that they lie on its node. Threads are
 * together when each runs on the node where all pages of both of its blocks are; when they are found so some times in
 * a row, the part takes as many rounds again and ends. Ends with 0 after both parts, with 3 when it has waited in vain.
 * With 0 seconds it only ends when it is told to, by SIGTERM, and rests after each look: what it is observed by needs
 * the processors more than it does.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, BLOCK = 128 << 10, PAGE = 4096, PAGES = BLOCK / PAGE, LOOK = 20, IN_A_ROW = 10 };
static long threads = 4, longest = 240, apart, together;
static char *blocks;
static long ends; /* of this part, in rounds; 0: when all are together */
static pthread_barrier_t barrier;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Of a page that the kernel has made ready for a hint fault it does not say where it is: that is not together, either. */
static bool has_all(int node, char *block) {
    void *at[PAGES];
    int found[PAGES];
    for (int page = 0; page < PAGES; page++) at[page] = block + page * PAGE, found[page] = -1;
    if (syscall(SYS_move_pages, 0, PAGES, at, NULL, found, 0)) return false;
    for (int page = 0; page < PAGES; page++)
        if (found[page] != node) return false;
    return true;
}

static void use(char *block) {
    volatile uint64_t *words = (volatile uint64_t *)(void *)block;
    for (int i = 0; i < BLOCK / 8; i += 2) words[i] = words[i + 1] + (uint64_t)i;
}

static void part(char *own, char *partner) {
    const double start = now();
    for (long round = 1;; round++) {
        use(own);
        use(partner);
        if (round % LOOK) continue;
        if (!longest) usleep(100000);
        unsigned cpu, node;
        syscall(SYS_getcpu, &cpu, &node, NULL);
        if (!ends && !(has_all((int)node, own) && has_all((int)node, partner)))
            __atomic_add_fetch(&apart, 1, __ATOMIC_RELAXED);
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
            together = apart ? 0 : together + 1;
            apart = 0;
            if (!ends && longest && together == IN_A_ROW) ends = 2 * round;
            if (!ends && longest && now() - start > (double)longest) exit(3);
        }
        pthread_barrier_wait(&barrier);
        if (ends && round >= ends) return;
    }
}

static void *run(void *number) {
    long self = (long)number, second = (self ^ 1) < threads ? self ^ 1 : self;
    part(blocks + self * BLOCK, blocks + (self + threads / 2) % threads * BLOCK);
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) ends = together = 0;
    pthread_barrier_wait(&barrier);
    part(blocks + self * BLOCK, blocks + second * BLOCK);
    return NULL;
}

static void leave(int signal) {
    (void)signal;
    _exit(write(1, "told to end\n", 12) != 12);
}

int main(int count, char **words) {
    pthread_t made[MOST];
    if (count > 1) threads = atol(words[1]);
    if (count > 2) longest = atol(words[2]);
    signal(SIGTERM, leave);
    if (threads < 2 || threads > MOST) return 2;
    size_t bytes = (size_t)threads * BLOCK;
    blocks = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (blocks == MAP_FAILED || madvise(blocks, bytes, MADV_NOHUGEPAGE)) return 1;
    memset(blocks, 1, bytes);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long t = 0; t < threads; t++) pthread_create(&made[t], NULL, run, (void *)t);
    for (long t = 0; t < threads; t++) pthread_join(made[t], NULL);
    return 0;
}
