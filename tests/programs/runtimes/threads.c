/* Threads that make a thread each, all alive at once until the input ends. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *rest(void *unused) {
    static char byte;
    while (read(0, &byte, 1) > 0) {}
    return unused;
}

static void *pair(void *unused) {
    pthread_t helper;
    pthread_create(&helper, NULL, rest, NULL);
    rest(NULL);
    pthread_join(helper, NULL);
    return unused;
}

int main(void) {
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) pthread_create(&threads[i], NULL, pair, NULL);
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    printf("%ld\n", sysconf(_SC_NPROCESSORS_ONLN));
}
