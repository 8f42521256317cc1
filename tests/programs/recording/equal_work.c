/* Four threads that do the same, each for itself.
 *
 *     equal_work [thousand accesses of each=4000]
 */
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4 };

static int thousands = 4000;

static void *work(void *unused) {
    volatile long words[64];
    for (long i = 0; i < 1000L * thousands; i++) words[i % 64] = i;
    return unused;
}

int main(int argc, char **argv) {
    if (argc > 1) thousands = atoi(argv[1]);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
