/* Says on which cpus each OpenMP thread may run: "thread cpu cpu…", a line a thread. */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>

int main(void) {
#pragma omp parallel
#pragma omp critical
    {
        cpu_set_t set;
        sched_getaffinity(0, sizeof set, &set);
        printf("%d", omp_get_thread_num());
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &set)) printf(" %d", cpu);
        puts("");
    }
}
