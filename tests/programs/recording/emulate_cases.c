/* Programs with known accesses for the tests of the emulate backend.
 *
 * usage: emulate_cases CASE [NUMBERS…]. Thread i (from 1; main is 0) works in the MiB at BASE + i MiB.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define BASE 0x100000000000
#define AREA (1l << 20)
#define THREADS 64

static long numbers[4];
static char *area(long thread) { return (char *)BASE + thread * AREA; }

/* Exactly so many loads, stores and atomic read-modify-writes of 8 bytes, going round 256 KiB. */
static void kernel(char *place, long loads, long stores, long updates) {
    for (long i = 0; i < loads; i++)
        __asm__ volatile("movq (%0), %%rax" ::"r"(place + i * 8 % (AREA / 4)) : "rax", "memory");
    for (long i = 0; i < stores; i++)
        __asm__ volatile("movq %1, (%0)" ::"r"(place + i * 8 % (AREA / 4)), "r"(i) : "memory");
    for (long i = 0; i < updates; i++)
        __asm__ volatile("lock incq (%0)" ::"r"(place + i * 8 % (AREA / 4)) : "memory", "cc");
}

static void *count(void *thread) {
    long i = (long)thread;
    kernel(area(i), numbers[1] * i, numbers[2] * i, numbers[3]);
    return NULL;
}

static void *begin_count(void *begun) {
    atomic_store((atomic_int *)begun, 1);
    return count((void *)1l);
}

/* Every thread updates the same line. */
static void *share(void *thread) {
    (void)thread;
    kernel(area(0), 0, 0, 0);
    for (long i = 0; i < numbers[1]; i++) __asm__ volatile("lock incq (%0)" ::"r"(area(0)) : "memory", "cc");
    return NULL;
}

/* Runs for ever in registers: must not keep the others from their turns. */
static void *compute(void *thread) {
    (void)thread;
    __asm__ volatile("1: incq %%rax; jmp 1b" ::: "rax");
    return NULL;
}

static void *forks(void *thread) {
    for (long i = 0; i < numbers[1]; i++) {
        pid_t child = fork();
        if (child == 0) {
            kernel(area((long)thread), 10, 10, 0);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        kernel(area((long)thread), 10, 10, 0);
    }
    return NULL;
}

static void *spin(void *flag) {
    while (!atomic_load((atomic_int *)flag)) __builtin_ia32_pause();
    return NULL;
}

static void *leave(void *thread) {
    kernel(area(1), numbers[1], 0, 0);
    exit(thread ? 7 : 0);
}

static void threads(long many, void *(*work)(void *)) {
    pthread_t handles[THREADS];
    for (long i = 0; i < many; i++) pthread_create(&handles[i], NULL, work, (void *)(i + 1));
    for (long i = 0; i < many; i++) pthread_join(handles[i], NULL);
}

/* Main touches each page of the second thread's area first; with `again` it is mapped anew before that thread starts. */
static void home(bool again) {
    for (long at = 0; at < AREA; at += 4096) kernel(area(2) + at, 0, 1, 0);
    if (again) {
        munmap(area(2), AREA);
        if (mmap(area(2), AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != area(2))
            exit(99);
    }
    threads(2, count);
}

static volatile sig_atomic_t ticks;
static void tick(int number) { ticks += number == SIGALRM; }

/* A timer of a millisecond goes on while threads work; ends when it has fired 20 times. */
static void timer(void) {
    struct itimerval every = {{0, 1000}, {0, 1000}};
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &every, NULL);
    while (ticks < 20) threads(numbers[0], count);
}

static void spinning(void) {
    pthread_t waiter[3];
    static atomic_int flag;
    for (int i = 0; i < 3; i++) pthread_create(&waiter[i], NULL, spin, &flag);
    kernel(area(1), 200000, 0, 0);
    atomic_store(&flag, 1);
    for (int i = 0; i < 3; i++) pthread_join(waiter[i], NULL);
}

static void computing(void) {
    pthread_t other;
    pthread_create(&other, NULL, compute, NULL);
    kernel(area(1), 200000, 0, 0);
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    for (int i = 2; i < argc && i < 6; i++) numbers[i - 2] = atol(argv[i]);
    void *place = mmap(area(0), (THREADS + 1) * AREA, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
    if (place != area(0)) return 99;
    if (!strcmp(name, "count")) threads(numbers[0], count);
    else if (!strcmp(name, "full")) {
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){16, 16});
        while (open("/dev/null", O_RDONLY) >= 0) {} /* every descriptor that there may be */
        threads(numbers[0], count);
    } else if (!strcmp(name, "share")) threads(numbers[0], share);
    else if (!strcmp(name, "fork")) threads(numbers[0], forks);
    else if (!strcmp(name, "home")) home(false);
    else if (!strcmp(name, "remap")) home(true);
    else if (!strcmp(name, "timer")) timer();
    else if (!strcmp(name, "spin")) spinning();
    else if (!strcmp(name, "compute")) computing();
    else if (!strcmp(name, "leave")) threads(1, leave);
    else if (!strcmp(name, "churn"))
        for (long i = 0; i < numbers[0]; i++) threads(1, count);
    else if (!strcmp(name, "exec")) execl(argv[0], argv[0], "count", "1", "100", "50", "0", NULL);
    else if (!strcmp(name, "die")) {
        kernel(area(0), numbers[1], 0, 0);
        kill(getpid(), (int)numbers[0]);
    } else if (!strcmp(name, "affinity")) {
        cpu_set_t mask;
        pthread_t other;
        atomic_int begun = 0;
        pthread_create(&other, NULL, begin_count, &begun);
        while (!atomic_load(&begun)) __builtin_ia32_pause();
        sched_getaffinity(0, sizeof mask, &mask);
        pthread_join(other, NULL);
        return CPU_COUNT(&mask);
    }
    return 0;
}
