/* Updates of random places in a table that the main thread sets up, by all threads (as in RandomAccess, GUPS).
 *
 *     updates [log2 of the table's words=24] [updates of each thread=300000]
 */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    uint64_t words = UINT64_C(1) << (argc > 1 ? atoi(argv[1]) : 24);
    long updates = argc > 2 ? atol(argv[2]) : 300000;
    uint64_t *table = malloc(words * sizeof *table);
    if (!table) return 1;
    for (uint64_t i = 0; i < words; i++) table[i] = i;
#pragma omp parallel
    {
        uint64_t random = 7919 * (uint64_t)omp_get_thread_num() + 1234567;
        for (long i = 0; i < updates; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            table[(random >> 30) & (words - 1)] ^= random;
        }
    }
    printf("checked %llu\n", (unsigned long long)table[words / 2]);
    return 0;
}
