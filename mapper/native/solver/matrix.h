/* A symmetric matrix with zero diagonal, as a whole or by the entries of its rows that are not zero. */
#ifndef NUMAPLAN_MATRIX_H
#define NUMAPLAN_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Loops over whole rows, compiled for wide vectors as well; the sums come out the same, bit for bit. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

/* Four numbers at once; gcc and clang make of it what the processor has. */
typedef double four __attribute__((vector_size(32), aligned(8)));
typedef int64_t mask __attribute__((vector_size(32), aligned(8)));

/* cells: n x n, row after row; where it is NULL row i has the entries start[i] .. start[i + 1] of to[] and weight[]. */
struct matrix {
    int n;
    const double *cells, *weight;
    const size_t *start;
    const int *to;
};

/* One row; to: NULL where entry e stands in column e. */
struct row {
    int count;
    const int *to;
    const double *weight;
};

static inline struct row matrix_row(const struct matrix *matrix, int i) {
    if (matrix->cells) return (struct row){matrix->n, NULL, matrix->cells + (size_t)i * (size_t)matrix->n};
    size_t from = matrix->start[i];
    return (struct row){(int)(matrix->start[i + 1] - from), matrix->to + from, matrix->weight + from};
}

static inline int row_column(struct row row, int e) { return row.to ? row.to[e] : e; }

/* Entry (i, j). */
double matrix_entry(const struct matrix *matrix, int i, int j);

/* Number of entries that a walk over all rows sees. */
uint64_t matrix_size(const struct matrix *matrix);

/* To sum[j]: factor * (i, j); factor * ((a, j) - (b, j)); factor * sign[j] * (i, j). */
void matrix_add_row(double *restrict sum, double factor, const struct matrix *matrix, int i);
void matrix_add_difference(double *restrict sum, double factor, const struct matrix *matrix, int a, int b);
void matrix_add_signed(double *restrict sum, double factor, const double *restrict sign, const struct matrix *matrix,
                       int i);

/* The matrix of bundles: those i with the same map[i] in 0 .. m-1 become one. False without memory. */
bool matrix_contract(const struct matrix *matrix, const int *map, int m, struct matrix *result);

/* The rows and columns of `count` members, in their order. False without memory. */
bool matrix_part(const struct matrix *matrix, const int *members, int count, struct matrix *result);

/* Hold a whole matrix by its rows where most of it is zero; else result->cells stays NULL and start too. */
bool matrix_thinned(const struct matrix *matrix, struct matrix *result);

void matrix_free(struct matrix *matrix);

#endif
