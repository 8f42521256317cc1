/* Heat in a plate, OpenMP with a static schedule: every thread sweeps the same rows each time.
 *
 *     static [rows=3072] [columns=4096] [sweeps=3]
 *
 * The plate is set up by the main thread, as codes do that read their input; the second copy by all threads. Both are
 * larger than the last-level caches of a machine of four nodes together.
 */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long rows = argc > 1 ? atol(argv[1]) : 3072, columns = argc > 2 ? atol(argv[2]) : 4096;
    long sweeps = argc > 3 ? atol(argv[3]) : 3;
    double *now = malloc(rows * columns * sizeof(double)), *next = malloc(rows * columns * sizeof(double));
    if (!now || !next) return 1;
    for (long i = 0; i < rows * columns; i++) now[i] = (double)(i % 97);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < rows * columns; i++) next[i] = 0.0;
    for (long sweep = 0; sweep < sweeps; sweep++) {
#pragma omp parallel for schedule(static)
        for (long row = 1; row < rows - 1; row++) {
            const double *above = now + (row - 1) * columns, *here = above + columns, *below = here + columns;
            double *to = next + row * columns;
            for (long k = 1; k < columns - 1; k++)
                to[k] = 0.5 * here[k] + 0.125 * (here[k - 1] + here[k + 1] + above[k] + below[k]);
        }
        double *other = now;
        now = next;
        next = other;
    }
    printf("checked %.6f\n", now[rows / 2 * columns + columns / 2] + now[columns + 1]);
    return 0;
}
