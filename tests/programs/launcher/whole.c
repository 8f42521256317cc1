/* The library compiled in, but for the hooks of malloc (a sanitizer has its own): many threads are born and end, and their
 * planned blocks are placed, moved by next-touch, looked at and given back, all at once.
 *
 *     launch_whole site             prints where blocks are asked for, as an offset in the program
 *     launch_whole THREADS ROUNDS   in each round so many threads; 0.1 to 0.THREADS are planned, two blocks each, and as
 *                                   many by a rule
 *     launch_whole fork             the same while the main thread forks children that have planned blocks, too
 */
#include "enforce.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#define NUMAPLAN_BUILDING
#include "numaplan.h"

enum { BLOCK = 256 * 1024, MOST = 64, FORKS = 20 };
int numaplan_mark_next_touch(void *address, size_t bytes, size_t granule, int how);
static _Atomic unsigned wrong, placed, given_back;
static _Atomic bool forking;

static uintptr_t site(void) { return (uintptr_t)site; }

/* The thread sanitizer does not see the kernel give one thread the memory that another gave back. */
static void handed_over(const char *block) {
    static _Atomic unsigned turns[1024];
    turns[((uintptr_t)block >> 12) % 1024]++;
}

static char *make(void) {
    char *block = (char *)syscall(SYS_mmap, NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) exit(9);
    for (size_t at = 0; at < BLOCK; at += 4096) handed_over(block + at);
    np_modules_scan();
    if (np_hooks.region_made(NP_HEAP, (uintptr_t)block, BLOCK, site(), ++np_self.sequence))
        placed++, np_live_add((uintptr_t)block);
    return block;
}

static void give_back(char *block) {
    if (np_live_remove((uintptr_t)block)) np_hooks.region_gone(NP_HEAP, (uintptr_t)block, BLOCK);
    np_hooks.leaving((uintptr_t)block, BLOCK);
    for (size_t at = 0; at < BLOCK; at += 4096) handed_over(block + at);
    syscall(SYS_munmap, block, BLOCK);
}

static void *work(void *number) {
    char *one = make(), *other = make();
    cpu_set_t mask;
    sched_getaffinity(0, sizeof mask, &mask);
    sched_setaffinity(0, sizeof mask, &mask);
    memset(one, 1, BLOCK), memset(other, 2, BLOCK);
    if (numaplan_mark_next_touch(other, BLOCK, 4096, NUMAPLAN_USER)) wrong++;
    long sum = 0;
    for (size_t at = 0; at < BLOCK; at += 512) sum += one[at] + other[at];
    wrong += sum != 3 * BLOCK / 512;
    pthread_setname_np(pthread_self(), "worker");
    char *third = make(), *fourth = make();
    memset(third, 3, BLOCK), memset(fourth, 4, BLOCK);
    give_back(one);
    give_back(third);
    give_back(other);
    give_back(fourth);
    return number;
}

static int work_c11(void *number) { return work(number) != number; }

/* The thread sanitizer knows nothing of threads that are made so, and dies of them. */
static void one_c11(void) {
#ifdef __SANITIZE_THREAD__
    pthread_t other;
    if (pthread_create(&other, NULL, work, NULL) || pthread_join(other, NULL)) exit(8);
    (void)work_c11;
#else
    thrd_t other;
    int code = 1;
    if (thrd_create(&other, work_c11, NULL) != thrd_success || thrd_join(other, &code) != thrd_success) exit(8);
    wrong += code != 0;
#endif
}

static void together(int threads) {
    pthread_t made[MOST];
    for (long i = 0; i < threads; i++)
        if (pthread_create(&made[i], NULL, work, (void *)i)) exit(8);
    one_c11();
    for (int i = 0; i < threads; i++) pthread_join(made[i], NULL);
}

static void *keep_at_it(void *unused) {
    for (; forking; given_back++) give_back(make());
    return unused;
}

static void fork_on(void) {
    pthread_t other;
    forking = true;
    pthread_create(&other, NULL, keep_at_it, NULL);
    while (!given_back) sched_yield();
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            char *block = make(); /* and the end looks at where it is */
            memset(block, 1, BLOCK);
            exit(0);
        }
        int status = -1;
        if (waitpid(child, &status, 0) != child || status) wrong++;
    }
    forking = false;
    pthread_join(other, NULL);
}

int main(int count, char **words) {
    Dl_info own;
    if (count == 2 && !strcmp(words[1], "site"))
        return dladdr((void *)site, &own) ? printf("%lx\n", site() - (uintptr_t)own.dli_fbase) < 0 : 9;
    if (count == 2 && !strcmp(words[1], "fork")) fork_on();
    for (int round = 0; count > 2 && round < atoi(words[2]); round++) together(atoi(words[1]));
    printf("%u wrong, %u placed\n", wrong, placed);
    return wrong != 0;
}
