/* Makes a thread on each of these cpus, by its attributes, one after another, and one on any; each prints how many cpus it
 * is told of, and where it runs.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static void *tell(void *unused) {
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask)) exit(2);
    printf("%d %d\n", CPU_COUNT(&mask), sched_getcpu());
    return unused;
}

static void make(const pthread_attr_t *attributes) {
    pthread_t thread;
    if (pthread_create(&thread, attributes, tell, NULL) || pthread_join(thread, NULL)) exit(1);
}

int main(int count, char **words) {
    for (int i = 1; i < count; i++) {
        pthread_attr_t attributes;
        cpu_set_t mask;
        CPU_ZERO(&mask);
        CPU_SET(atoi(words[i]), &mask);
        pthread_attr_init(&attributes);
        pthread_attr_setaffinity_np(&attributes, sizeof mask, &mask);
        make(&attributes);
        pthread_attr_destroy(&attributes);
    }
    make(NULL);
    return 0;
}
