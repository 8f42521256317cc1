/* What a program learns of its cpus: `seen_cpus`, one line `NAME NUMBER…` for each way to ask. */
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

static int affinity(void) {
    cpu_set_t mask;
    return sched_getaffinity(0, sizeof mask, &mask) ? -1 : CPU_COUNT(&mask);
}

static int by_system_call(void) {
    unsigned long mask[16];
    int count = 0;
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    for (long i = 0; i < bytes / (long)sizeof *mask; i++) count += __builtin_popcountl(mask[i]);
    return count;
}

static void *of_thread(void *unused) {
    (void)unused;
    printf("inherited %d\n", affinity());
    return NULL;
}

int main(void) {
    cpu_set_t mask;
    printf("openmp %d\n", omp_get_num_procs());
    printf("configured %ld %d\n", sysconf(_SC_NPROCESSORS_CONF), get_nprocs_conf());
    printf("online %ld %d\n", sysconf(_SC_NPROCESSORS_ONLN), get_nprocs());
    printf("affinity %d %d\n", affinity(), by_system_call());
    int threads = 0;
#pragma omp parallel reduction(+ : threads)
    threads++;
    printf("threads %d\n", threads);

    static const cpu_set_t none = {{1ul << 40}}; /* in memory that cannot be written */
    printf("none %d\n", sched_setaffinity(0, sizeof none, &none));
    CPU_ZERO(&mask);
    CPU_SET(9, &mask), CPU_SET(14, &mask), CPU_SET(40, &mask);
    int set = sched_setaffinity(0, sizeof mask, &mask);
    printf("set %d %d\n", set, CPU_COUNT(&mask));
    pthread_getaffinity_np(pthread_self(), sizeof mask, &mask);
    printf("got %d %d %d\n", CPU_COUNT(&mask), CPU_ISSET(9, &mask), CPU_ISSET(14, &mask));
    pthread_t other;
    pthread_create(&other, NULL, of_thread, NULL);
    pthread_join(other, NULL);
    CPU_CLR(9, &mask);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof mask, &mask);
    printf("created %d\n", pthread_create(&other, &attributes, of_thread, NULL));
    pthread_join(other, NULL);
    fflush(stdout);
    if (fork() == 0) {
        printf("forked %d\n", affinity());
        fflush(stdout);
        execlp("nproc", "nproc", NULL);
        _exit(1);
    }
    wait(NULL);
    return 0;
}
