/* What it costs to mark a page, to move it when it is touched, and to move it by move_pages, in ns a page:
 *
 *     next_touch_cost [most pages=65536] [repeats=3]
 *
 * A line for each number of pages: pages, mark, touch page by page, touch by granule, move_pages, kernel's mark, memcpy. The
 * memory is on the first node, and who touches it on the last. mark: of pages, each with a granule of its own.
 */
#include <linux/mempolicy.h>
#include <numaplan.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, COLUMNS = 6, BUFFER = 256 };
static int first_cpu, last_cpu;
static unsigned last_node;
static char *other; /* for memcpy */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void run_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static char *fresh(size_t pages) {
    char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(9);
    madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
    run_on(first_cpu);
    memset(memory, 1, pages * PAGE);
    run_on(last_cpu);
    return memory;
}

static double touch(char *memory, size_t pages) {
    double start = now();
    for (size_t page = 0; page < pages; page++) ((volatile char *)memory)[page * PAGE]++;
    return now() - start;
}

static double move(char *memory, size_t pages) {
    void **at = malloc(pages * sizeof *at);
    int *nodes = malloc(pages * sizeof *nodes), *status = malloc(pages * sizeof *status);
    for (size_t page = 0; page < pages; page++) at[page] = memory + page * PAGE, nodes[page] = (int)last_node;
    double start = now();
    syscall(SYS_move_pages, 0, pages, at, nodes, status, MPOL_MF_MOVE);
    double spent = now() - start;
    for (size_t page = 0; page < pages; page++)
        if (status[page] != (int)last_node) exit(8);
    free(at), free(nodes), free(status);
    return spent;
}

static void check(int failed) {
    if (!failed) return;
    perror("next_touch");
    exit(7);
}

static void measure(size_t pages, double columns[COLUMNS]) {
    size_t bytes = pages * PAGE;
    char *memory = fresh(pages);
    double start = now();
    check(numaplan_next_touch_how(memory, bytes, PAGE, NUMAPLAN_USER));
    columns[0] = now() - start;
    columns[1] = touch(memory, pages);
    munmap(memory, bytes);
    memory = fresh(pages);
    check(numaplan_next_touch_how(memory, bytes, 0, NUMAPLAN_USER));
    columns[2] = touch(memory, pages);
    munmap(memory, bytes);
    memory = fresh(pages);
    columns[3] = move(memory, pages);
    start = now();
    columns[4] = numaplan_next_touch_how(memory, bytes, 0, NUMAPLAN_KERNEL) ? 0 : now() - start;
    start = now();
    for (size_t page = 0; page < pages; page++) memcpy(other + page % BUFFER * PAGE, memory + page * PAGE, PAGE);
    columns[5] = now() - start;
    munmap(memory, bytes);
}

int main(int count, char **words) {
    size_t most = count > 1 ? strtoul(words[1], NULL, 10) : 65536;
    int repeats = count > 2 ? atoi(words[2]) : 3;
    unsigned cpu;
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    for (first_cpu = 0; !CPU_ISSET(first_cpu, &set);) first_cpu++;
    for (last_cpu = CPU_SETSIZE - 1; !CPU_ISSET(last_cpu, &set);) last_cpu--;
    run_on(last_cpu);
    syscall(SYS_getcpu, &cpu, &last_node, NULL);
    other = malloc(BUFFER * PAGE); /* small: a node of the lab holds little more than what is moved */
    memset(other, 1, BUFFER * PAGE);
    for (size_t pages = 1; pages <= most; pages *= 4) {
        double best[COLUMNS];
        for (int turn = 0; turn < repeats; turn++) {
            double columns[COLUMNS];
            measure(pages, columns);
            for (int i = 0; i < COLUMNS; i++)
                if (!turn || columns[i] < best[i]) best[i] = columns[i];
        }
        printf("%zu", pages);
        for (int i = 0; i < COLUMNS; i++) printf(" %.1f", best[i] / (double)pages);
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
