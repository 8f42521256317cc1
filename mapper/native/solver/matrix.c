/* Matrices in two forms: small and dense ones as a whole, for wide vectors; large and sparse ones by their entries. */
#include "matrix.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL = 64, THIN = 4 };

WIDE static void add_whole(double *restrict sum, double factor, const double *restrict row, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += factor * row[i];
}

WIDE static void add_whole_difference(double *restrict sum, double factor, const double *restrict left,
                                      const double *restrict right, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += factor * (left[i] - right[i]);
}

WIDE static void add_whole_signed(double *restrict sum, double factor, const double *restrict sign,
                                  const double *restrict row, size_t n) {
    for (size_t i = 0; i < n; i++) sum[i] += factor * sign[i] * row[i];
}

uint64_t matrix_size(const struct matrix *matrix) {
    return matrix->cells ? (uint64_t)matrix->n * (uint64_t)matrix->n : matrix->start[matrix->n];
}

double matrix_entry(const struct matrix *matrix, int i, int j) {
    if (matrix->cells) return matrix->cells[(size_t)i * (size_t)matrix->n + (size_t)j];
    struct row row = matrix_row(matrix, i), other = matrix_row(matrix, j);
    if (other.count < row.count) row = other, j = i;
    for (int e = 0; e < row.count; e++)
        if (row.to[e] == j) return row.weight[e];
    return 0;
}

void matrix_add_row(double *restrict sum, double factor, const struct matrix *matrix, int i) {
    struct row row = matrix_row(matrix, i);
    if (!row.to) {
        add_whole(sum, factor, row.weight, (size_t)row.count);
        return;
    }
    for (int e = 0; e < row.count; e++) sum[row.to[e]] += factor * row.weight[e];
}

void matrix_add_difference(double *restrict sum, double factor, const struct matrix *matrix, int a, int b) {
    if (matrix->cells) {
        add_whole_difference(sum, factor, matrix_row(matrix, a).weight, matrix_row(matrix, b).weight,
                             (size_t)matrix->n);
        return;
    }
    matrix_add_row(sum, factor, matrix, a);
    matrix_add_row(sum, -factor, matrix, b);
}

void matrix_add_signed(double *restrict sum, double factor, const double *restrict sign, const struct matrix *matrix,
                       int i) {
    struct row row = matrix_row(matrix, i);
    if (!row.to) {
        add_whole_signed(sum, factor, sign, row.weight, (size_t)row.count);
        return;
    }
    for (int e = 0; e < row.count; e++) sum[row.to[e]] += factor * sign[row.to[e]] * row.weight[e];
}

void matrix_free(struct matrix *matrix) {
    free((void *)matrix->cells);
    free((void *)matrix->start);
    free((void *)matrix->to);
    free((void *)matrix->weight);
    *matrix = (struct matrix){0};
}

/* A matrix of n rows that takes its entries one row after the other. */
struct growing {
    int n;
    size_t *start, used;
    int *to;
    double *weight;
};

static bool growing_new(struct growing *rows, int n, size_t most) {
    rows->n = n;
    rows->used = 0;
    rows->start = malloc(((size_t)n + 1) * sizeof *rows->start);
    rows->to = malloc((most + 1) * sizeof *rows->to);
    rows->weight = malloc((most + 1) * sizeof *rows->weight);
    return rows->start && rows->to && rows->weight;
}

static void growing_free(struct growing *rows) {
    free(rows->start);
    free(rows->to);
    free(rows->weight);
}

/* The finished matrix, in the form that suits its size and fullness; takes the rows over. */
static bool grown(struct growing *rows, struct matrix *result) {
    size_t n = (size_t)rows->n;
    *result = (struct matrix){rows->n, NULL, rows->weight, rows->start, rows->to};
    rows->start[n] = rows->used;
    if (n > SMALL && THIN * rows->used < n * n) return true;
    double *cells = calloc(n * n + 1, sizeof *cells);
    for (size_t i = 0; cells && i < n; i++)
        for (size_t e = rows->start[i]; e < rows->start[i + 1]; e++)
            cells[i * n + (size_t)rows->to[e]] = rows->weight[e];
    matrix_free(result);
    *result = (struct matrix){.n = (int)n, .cells = cells};
    return cells != NULL;
}

static bool contract_whole(const struct matrix *matrix, const int *map, int m, struct matrix *result) {
    size_t n = (size_t)matrix->n, count = (size_t)m;
    double *cells = calloc(count * count + 1, sizeof *cells);
    for (size_t i = 0; cells && i < n; i++) {
        const double *row = matrix->cells + i * n;
        double *sum = cells + (size_t)map[i] * count;
        for (size_t j = 0; j < n; j++)
            if (row[j] != 0) sum[map[j]] += row[j];
    }
    for (size_t i = 0; cells && i < count; i++) cells[i * count + i] = 0;
    *result = (struct matrix){.n = m, .cells = cells};
    return cells != NULL;
}

/* Elements in the order of their bundles; first[b]: where bundle b begins. */
static void sort_by_bundle(const int *map, int n, int m, int *first, int *sorted) {
    memset(first, 0, ((size_t)m + 1) * sizeof *first);
    for (int i = 0; i < n; i++) first[map[i] + 1]++;
    for (int b = 0; b < m; b++) first[b + 1] += first[b];
    for (int i = 0; i < n; i++) sorted[first[map[i]]++] = i;
    for (int b = m; b > 0; b--) first[b] = first[b - 1];
    first[0] = 0;
}

/* One bundle's row; place[c]: 1 + where column c stands in the rows, when it belongs to this one. */
static void add_bundle(const struct matrix *matrix, const int *map, const int *members, int count, int bundle,
                       size_t *place, struct growing *rows) {
    size_t from = rows->start[bundle] = rows->used;
    for (int m = 0; m < count; m++) {
        struct row row = matrix_row(matrix, members[m]);
        for (int e = 0; e < row.count; e++) {
            int column = map[row.to[e]];
            if (column == bundle) continue;
            if (place[column] <= from) {
                rows->to[rows->used] = column;
                rows->weight[rows->used] = 0;
                place[column] = ++rows->used;
            }
            rows->weight[place[column] - 1] += row.weight[e];
        }
    }
}

bool matrix_contract(const struct matrix *matrix, const int *map, int m, struct matrix *result) {
    if (matrix->cells) return contract_whole(matrix, map, m, result);
    int *first = malloc(((size_t)m + 1) * sizeof *first), *sorted = malloc((size_t)matrix->n * sizeof *sorted);
    size_t *place = calloc((size_t)m + 1, sizeof *place);
    struct growing rows = {0};
    bool done = first && sorted && place && growing_new(&rows, m, matrix->start[matrix->n]);
    if (done) {
        sort_by_bundle(map, matrix->n, m, first, sorted);
        for (int b = 0; b < m; b++)
            add_bundle(matrix, map, sorted + first[b], first[b + 1] - first[b], b, place, &rows);
        done = grown(&rows, result);
    } else {
        growing_free(&rows);
    }
    free(first);
    free(sorted);
    free(place);
    return done;
}

static bool part_of_whole(const struct matrix *matrix, const int *members, int count, struct matrix *result) {
    size_t n = (size_t)matrix->n, m = (size_t)count;
    double *cells = malloc((m * m + 1) * sizeof *cells);
    for (size_t a = 0; cells && a < m; a++) {
        const double *row = matrix->cells + (size_t)members[a] * n;
        for (size_t b = 0; b < m; b++) cells[a * m + b] = row[members[b]];
    }
    *result = (struct matrix){.n = count, .cells = cells};
    return cells != NULL;
}

bool matrix_part(const struct matrix *matrix, const int *members, int count, struct matrix *result) {
    if (matrix->cells) return part_of_whole(matrix, members, count, result);
    int *index = calloc((size_t)matrix->n, sizeof *index); /* 1 + the position among the members */
    size_t most = 0;
    for (int a = 0; a < count; a++) most += (size_t)matrix_row(matrix, members[a]).count;
    struct growing rows = {0};
    bool done = index && growing_new(&rows, count, most);
    for (int a = 0; done && a < count; a++) index[members[a]] = a + 1;
    for (int a = 0; done && a < count; a++) {
        struct row row = matrix_row(matrix, members[a]);
        rows.start[a] = rows.used;
        for (int e = 0; e < row.count; e++) {
            if (!index[row.to[e]]) continue;
            rows.to[rows.used] = index[row.to[e]] - 1;
            rows.weight[rows.used++] = row.weight[e];
        }
    }
    if (done) done = grown(&rows, result);
    else growing_free(&rows);
    free(index);
    return done;
}

bool matrix_thinned(const struct matrix *matrix, struct matrix *result) {
    size_t n = (size_t)matrix->n, entries = 0;
    *result = (struct matrix){.n = matrix->n};
    if (!matrix->cells || n <= SMALL) return true;
    for (size_t cell = 0; cell < n * n; cell++) entries += matrix->cells[cell] != 0;
    if (THIN * entries >= n * n) return true;
    struct growing rows = {0};
    if (!growing_new(&rows, matrix->n, entries)) {
        growing_free(&rows);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        rows.start[i] = rows.used;
        for (size_t j = 0; j < n; j++) {
            double value = matrix->cells[i * n + j];
            if (value == 0) continue;
            rows.to[rows.used] = (int)j;
            rows.weight[rows.used++] = value;
        }
    }
    return grown(&rows, result);
}
