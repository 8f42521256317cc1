/* OpenMP threads that initialise and use parts of an array of their own, and the first rows of the next one's.
 *
 *     exports [rows a thread] [sweeps]
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 512 };

int main(int argc, char **argv) {
    long rows = argc > 1 ? atol(argv[1]) : 64, sweeps = argc > 2 ? atol(argv[2]) : 40;
    int threads = omp_get_max_threads();
    double *grid = malloc((size_t)threads * rows * COLUMNS * sizeof(double));
    if (!grid) return 1;
#pragma omp parallel
    {
        long first = omp_get_thread_num() * rows;
        double *next = grid + (first + rows) % (threads * rows) * COLUMNS;
        double *own = grid + first * COLUMNS;
        for (long i = 0; i < rows * COLUMNS; i++) own[i] = (double)(i % 97);
#pragma omp barrier
        for (long sweep = 0; sweep < sweeps; sweep++) {
            for (long i = 1; i < rows * COLUMNS - 1; i++) own[i] = 0.5 * own[i] + 0.25 * (own[i - 1] + own[i + 1]);
            for (long i = 0; i < rows / 8 * COLUMNS; i++) own[i] += 0.125 * next[i];
        }
    }
    printf("checked %.6f\n", grid[rows * COLUMNS / 2]);
    return 0;
}
