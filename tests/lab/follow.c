/* The main thread initialises memory alone; then threads work on a part each.
 *
 *     follow [none|call] [pages=1024] [rounds=100] [granule=0]
 *
 * Prints how many pages are on the node of the thread that works on them, and a checksum.
 */
#include <numaplan.h>

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, MOST = 64 };
static unsigned char *memory;
static size_t pages = 1024, rounds = 100, right[MOST];
static uint64_t sums[MOST];
static long threads;
static pthread_barrier_t barrier;

static size_t pages_here(size_t from, size_t to) {
    unsigned cpu, node;
    size_t count = 0;
    syscall(SYS_getcpu, &cpu, &node, NULL);
    for (size_t page = from; page < to; page++) {
        void *at = memory + page * PAGE;
        int status = -1;
        syscall(SYS_move_pages, 0, 1, &at, NULL, &status, 0);
        count += status == (int)node;
    }
    return count;
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
    for (size_t round = 0, last = rounds; round < last; round++)
        for (unsigned char *at = memory + from * PAGE, *end = memory + to * PAGE; at < end; at += 64) sum += (*at)++;
    sums[self] = sum;
    pthread_barrier_wait(&barrier);
    right[self] = pages_here(from, to);
    return NULL;
}

int main(int count, char **words) {
    pthread_t made[MOST];
    threads = sysconf(_SC_NPROCESSORS_ONLN) < MOST ? sysconf(_SC_NPROCESSORS_ONLN) : MOST;
    if (count > 2) pages = strtoul(words[2], NULL, 10);
    if (count > 3) rounds = strtoul(words[3], NULL, 10);
    size_t bytes = pages * PAGE, granule = count > 4 ? strtoul(words[4], NULL, 10) : 0, all = 0;
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 9;
    memset(memory, 1, bytes);
    if (count > 1 && !strcmp(words[1], "call") && numaplan_next_touch_how(memory, bytes, granule, NUMAPLAN_AUTO))
        perror("numaplan_next_touch");
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long i = 0; i < threads; i++) pthread_create(&made[i], NULL, work, (void *)i);
    for (long i = 0; i < threads; i++) pthread_join(made[i], NULL);
    uint64_t sum = 0;
    for (long i = 0; i < threads; i++) all += right[i], sum += sums[i];
    printf("%zu of %zu pages, sum %llu\n", all, pages, (unsigned long long)sum);
    return 0;
}
