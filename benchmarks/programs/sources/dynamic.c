/* A sparse matrix times a vector, OpenMP with a dynamic schedule: rows differ in length, and whoever is free takes the
 * next ones, so that no row has a thread of its own.
 *
 *     dynamic [rows=200000] [products=4]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHORT = 12, LONG = 400, EVERY = 8 };

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Most rows are short; some are up to thirty times as long. */
static long length_of(long row) { return row % EVERY ? SHORT : SHORT + row * 37 % LONG; }

int main(int argc, char **argv) {
    long rows = argc > 1 ? atol(argv[1]) : 200000, products = argc > 2 ? atol(argv[2]) : 4;
    long *first = malloc((rows + 1) * sizeof(long));
    if (!first) return 1;
    first[0] = 0;
    for (long row = 0; row < rows; row++) first[row + 1] = first[row] + length_of(row);
    double *values = malloc(first[rows] * sizeof(double));
    int32_t *columns = malloc(first[rows] * sizeof(int32_t));
    double *x = malloc(rows * sizeof(double)), *y = malloc(rows * sizeof(double));
    if (!values || !columns || !x || !y) return 1;
    uint64_t state = 88172645463325252u;
    for (long k = 0; k < first[rows]; k++) {
        columns[k] = (int32_t)(next_random(&state) % (uint64_t)rows);
        values[k] = 1.0 / 64;
    }
    for (long row = 0; row < rows; row++) x[row] = 1.0;
    for (long product = 0; product < products; product++) {
#pragma omp parallel for schedule(dynamic, 64)
        for (long row = 0; row < rows; row++) {
            double sum = 0.0;
            for (long k = first[row]; k < first[row + 1]; k++) sum += values[k] * x[columns[k]];
            y[row] = sum;
        }
        double *other = x;
        x = y;
        y = other;
    }
    double sum = 0.0;
    for (long row = 0; row < rows; row += 1000) sum += x[row];
    printf("checked %.6f\n", sum);
    return 0;
}
