/* `launch_at_once N`: makes N threads one after another and prints how many of them might run on one cpu only, another
 * than the main thread's, when pthread_create had returned. They end when all were looked at.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 256 };
static pthread_mutex_t looked_at = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for(void *unused) {
    pthread_mutex_lock(&looked_at);
    pthread_mutex_unlock(&looked_at);
    return unused;
}

static cpu_set_t cpus_of(pthread_t thread) {
    cpu_set_t cpus;
    clockid_t clock;
    CPU_ZERO(&cpus);
    if (pthread_getcpuclockid(thread, &clock)) abort();
    if (sched_getaffinity((pid_t)(~(unsigned)clock >> 3), sizeof cpus, &cpus)) abort();
    return cpus;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 0, bound = 0;
    pthread_t made[MOST];
    if (threads > MOST) return 1;
    pthread_mutex_lock(&looked_at);
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&made[i], NULL, wait_for, NULL)) return 1;
        cpu_set_t cpus = cpus_of(made[i]);
        bound += CPU_COUNT(&cpus) == 1 && !CPU_ISSET(sched_getcpu(), &cpus);
    }
    pthread_mutex_unlock(&looked_at);
    for (int i = 0; i < threads; i++) pthread_join(made[i], NULL);
    printf("%d\n", bound);
    return 0;
}
