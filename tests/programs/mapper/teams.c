/* Teams made by one thread after another: main makes a maker and joins it, ROUNDS times, and each maker makes WORKERS
 * threads and joins them. The k-th worker of each round adds to every word of part (k + round) % WORKERS. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 3, WORKERS = 6, WORDS = 1 << 14, TIMES = 4 };

static volatile long *words;
static long round_number;

static void *work(void *number) {
    long part = ((long)number + round_number) % WORKERS;
    for (int again = 0; again < TIMES; again++)
        for (long i = 0; i < WORDS; i++) words[part * WORDS + i]++;
    return NULL;
}

static void *make(void *unused) {
    pthread_t team[WORKERS];
    for (long i = 0; i < WORKERS; i++) pthread_create(&team[i], NULL, work, (void *)i);
    for (long i = 0; i < WORKERS; i++) pthread_join(team[i], NULL);
    return unused;
}

int main(void) {
    words = malloc(WORKERS * WORDS * sizeof *words);
    memset((void *)words, 0, WORKERS * WORDS * sizeof *words);
    for (; round_number < ROUNDS; round_number++) {
        pthread_t maker;
        pthread_create(&maker, NULL, make, NULL);
        pthread_join(maker, NULL);
    }
    return 0;
}
