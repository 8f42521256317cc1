/* The main thread initialises memory alone; then threads work on a part each.
 *
 *     follow [none|call|kernel] [pages=1024] [rounds=100] [granule=0]
 *
 * Prints how many pages are on the node of the thread that works on them, and a checksum. rounds=0: memory that is bound to
 * node 0 at first; until the pages have followed, for LONGEST seconds at most, and prints the seconds that it took.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <numaplan.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, MOST = 64, LONGEST = 400 };
static unsigned char *memory;
static size_t pages = 1024, rounds = 100, right[MOST];
static uint64_t sums[MOST];
static long threads;
static pthread_barrier_t barrier;

/* Of a page that the kernel has made ready for a hint fault, or is about to move, it does not say where it is: touched before
 * it is asked, until it says so.
 */
static size_t pages_here(size_t from, size_t to) {
    unsigned cpu, node;
    size_t count = 0;
    syscall(SYS_getcpu, &cpu, &node, NULL);
    for (size_t page = from; page < to; page++) {
        void *at = memory + page * PAGE;
        int status;
        do {
            (void)*(volatile unsigned char *)at;
            if (syscall(SYS_move_pages, 0, 1, &at, NULL, &status, 0)) exit(7);
        } while (status == -ENOENT);
        count += status == (int)node;
    }
    return count;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Asked at every tenth round. */
static bool settled(size_t round, size_t from, size_t to, double start) {
    return round % 10 == 9 && (pages_here(from, to) == to - from || now() - start > LONGEST);
}

static void *work(void *number) {
    long self = (long)number;
    size_t from = pages * (size_t)self / (size_t)threads, to = pages * (size_t)(self + 1) / (size_t)threads;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(self, &set);
    sched_setaffinity(0, sizeof set, &set);
    pthread_barrier_wait(&barrier);
    uint64_t sum = 0;
    double start = now();
    for (size_t round = 0; rounds ? round < rounds : !settled(round, from, to, start); round++)
        for (unsigned char *at = memory + from * PAGE, *end = memory + to * PAGE; at < end; at += 64) sum += (*at)++;
    sums[self] = sum;
    pthread_barrier_wait(&barrier);
    right[self] = pages_here(from, to);
    return NULL;
}

/* In small pages: of a huge one the kernel moves all or nothing. */
static void bind(size_t bytes, int flags) {
    unsigned long first = 1;
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    if (syscall(SYS_mbind, memory, bytes, MPOL_BIND, &first, 64, flags)) exit(8);
}

/* From one cpu: where the scheduler moves the thread meanwhile, pages of two nodes would be made. */
static void initialise(size_t bytes) {
    cpu_set_t before, here;
    sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    sched_setaffinity(0, sizeof here, &here);
    memset(memory, 1, bytes);
    sched_setaffinity(0, sizeof before, &before);
}

int main(int count, char **words) {
    pthread_t made[MOST];
    threads = sysconf(_SC_NPROCESSORS_ONLN) < MOST ? sysconf(_SC_NPROCESSORS_ONLN) : MOST;
    if (count > 2) pages = strtoul(words[2], NULL, 10);
    if (count > 3) rounds = strtoul(words[3], NULL, 10);
    size_t bytes = pages * PAGE, granule = count > 4 ? strtoul(words[4], NULL, 10) : 0, all = 0;
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 9;
    if (!rounds) bind(bytes, 0);
    initialise(bytes);
    /* Those touched last may wait on a list of their cpu for others to come, and are not moved until then: whoever asks for
     * moves has these lists emptied.
     */
    if (!rounds) bind(bytes, MPOL_MF_MOVE);
    enum numaplan_how how = count > 1 && !strcmp(words[1], "kernel") ? NUMAPLAN_KERNEL : NUMAPLAN_AUTO;
    bool marks = count > 1 && strcmp(words[1], "none");
    if (marks && numaplan_next_touch_how(memory, bytes, granule, how)) perror("numaplan_next_touch");
    double start = now();
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long i = 0; i < threads; i++) pthread_create(&made[i], NULL, work, (void *)i);
    for (long i = 0; i < threads; i++) pthread_join(made[i], NULL);
    uint64_t sum = 0;
    for (long i = 0; i < threads; i++) all += right[i], sum += sums[i];
    printf("%zu of %zu pages, sum %llu", all, pages, (unsigned long long)sum);
    if (!rounds) printf(", %.1f s", now() - start);
    printf("\n");
    return 0;
}
