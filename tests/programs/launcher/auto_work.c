/* Two threads, each on a block of its own, then the exit code that the argument says; with `hang` it says `ready`,
 * works on and waits for a signal; with `crash` it dies of one; without a word or with `short` it does nothing. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 1 << 20, THREADS = 2, ROUNDS = 12 };

static void *work(void *block) {
    long *own = block, sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BYTES / sizeof *own; i++) sum += own[i]++;
    }
    return (void *)sum;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "short";
    pthread_t threads[THREADS];
    long total = 0;
    if (strcmp(how, "short") == 0) return 0;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, calloc(1, BYTES));
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        total += (long)sum;
    }
    if (strcmp(how, "hang") == 0) {
        puts("ready");
        fflush(stdout);
        for (;;) pause();
    }
    if (strcmp(how, "crash") == 0) raise(SIGSEGV);
    printf("%ld\n", total);
    return atoi(how);
}
