/* Arithmetic on whole rows of a matrix: where the solver spends its time on large tasks. */
#include "solver.h"

WIDE void add_row(double *restrict sum, const double *restrict row, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += row[i];
}

WIDE void add_scaled(double *restrict sum, double factor, const double *restrict row, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += factor * row[i];
}

WIDE void add_difference(double *restrict sum, double factor, const double *restrict left,
                         const double *restrict right, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += factor * (left[i] - right[i]);
}

WIDE void add_signed(double *restrict sum, double factor, const double *restrict sign, const double *restrict row,
                     size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += factor * sign[i] * row[i];
}

void add_bundled(double *restrict sum, const int *restrict map, const double *restrict row, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (row[i] != 0) sum[map[i]] += row[i];
}
