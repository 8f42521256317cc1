/* Two teams on one array. The first works on it block by block, each block many times while it is in the cache; the
 * second reads all of it, from memory, several times. Most accesses are the first team's, most of what reaches memory
 * is the second's: where the array is best depends on which of the two is counted.
 *
 *   cc -O2 -pthread reuse.c -o reuse
 *   ./reuse [MEGABYTES]    192 if none is given; several times what a last-level cache holds */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEAM = 4, WORDS = 8, BLOCK = 512, REUSED = 12, SWEEPS = 3 }; /* words of a line, and of a block */

static volatile double *array;
static size_t words;
static pthread_barrier_t started;
static double sums[2 * TEAM];

/* A team keeps together what it has done: the lines of its board go from cache to cache. */
static struct {
    _Alignas(64) atomic_long done;
} board[2 * TEAM];

static void tell(int self) {
    int first = self / TEAM * TEAM;
    atomic_fetch_add(&board[self].done, 1);
    for (int other = first; other < first + TEAM; other++) sums[self] += 1e-9 * (double)board[other].done;
}

static void *work(void *argument) {
    int self = (int)(size_t)argument, part = self % TEAM;
    size_t from = words / TEAM * (size_t)part, to = words / TEAM * (size_t)(part + 1);
    double sum = 0;
    pthread_barrier_wait(&started);
    for (int sweep = 0; sweep < (self < TEAM ? 1 : SWEEPS); sweep++)
        for (size_t block = from; block < to; block += BLOCK) {
            for (int again = 0; again < (self < TEAM ? REUSED : 1); again++)
                for (size_t word = block; word < block + BLOCK; word += WORDS) sum += array[word];
            tell(self);
        }
    sums[self] += sum;
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[2 * TEAM];
    words = (argc > 1 ? strtoul(argv[1], NULL, 10) : 192) * (1 << 20) / sizeof *array;
    words -= words % (TEAM * BLOCK);
    array = malloc((words ? words : 1) * sizeof *array);
    if (array == NULL) return 1;
    for (size_t word = 0; word < words; word++) array[word] = (double)(word % 7);
    pthread_barrier_init(&started, NULL, 2 * TEAM);
    for (int i = 0; i < 2 * TEAM; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(size_t)i) != 0) return 1;
    double total = 0;
    for (int i = 0; i < 2 * TEAM; i++) {
        pthread_join(threads[i], NULL);
        total += sums[i];
    }
    printf("sum %.0f\n", total);
    return 0;
}
