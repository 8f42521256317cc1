/* The assignment problem by shortest augmenting paths (Jonker and Volgenant 1987), one row after the other. */
#include "online.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* row_of, price: by column; reach, from: of the shortest path so far to each column, and the column before it. */
struct search {
    int64_t rows, columns;
    const double *cost;
    double *row_price, *price, *reach;
    int64_t *row_of, *from;
    bool *done;
};

static void extend(struct search *s, int64_t row, int64_t column, double length) {
    for (int64_t j = 0; j < s->columns; j++) {
        double reach = length + s->cost[row * s->columns + j] - s->row_price[row] - s->price[j];
        if (!s->done[j] && reach < s->reach[j]) {
            s->reach[j] = reach;
            s->from[j] = column;
        }
    }
}

static int64_t nearest(const struct search *s) {
    int64_t best = -1;
    for (int64_t j = 0; j < s->columns; j++)
        if (!s->done[j] && (best < 0 || s->reach[j] < s->reach[best])) best = j;
    return best;
}

/* Gives `row` a column, on the way moving others along the path. */
static void augment(struct search *s, int64_t row) {
    for (int64_t j = 0; j < s->columns; j++) {
        s->reach[j] = INFINITY;
        s->done[j] = false;
    }
    int64_t column = -1, end;
    double length = 0;
    for (extend(s, row, column, length);; extend(s, s->row_of[column], column, length)) {
        end = nearest(s);
        if (s->row_of[end] < 0) break;
        s->done[end] = true;
        length = s->reach[column = end];
    }
    length = s->reach[end];
    s->row_price[row] += length;
    for (int64_t j = 0; j < s->columns; j++)
        if (s->done[j]) {
            s->price[j] -= length - s->reach[j];
            s->row_price[s->row_of[j]] += length - s->reach[j];
        }
    for (int64_t before; end >= 0; end = before) {
        before = s->from[end];
        s->row_of[end] = before < 0 ? row : s->row_of[before];
    }
}

int online_assign(int64_t rows, int64_t columns, const double *cost, int64_t *chosen) {
    struct search s = {.rows = rows, .columns = columns, .cost = cost};
    s.row_price = calloc((size_t)rows + 1, sizeof(double));
    s.price = calloc((size_t)columns + 1, 2 * sizeof(double));
    s.row_of = malloc(((size_t)columns + 1) * 2 * sizeof(int64_t));
    s.done = malloc((size_t)columns + 1);
    bool ok = s.row_price && s.price && s.row_of && s.done;
    if (ok) {
        s.reach = s.price + columns;
        s.from = s.row_of + columns;
        for (int64_t j = 0; j < columns; j++) s.row_of[j] = -1;
        for (int64_t i = 0; i < rows; i++) augment(&s, i);
        for (int64_t j = 0; j < columns; j++)
            if (s.row_of[j] >= 0) chosen[s.row_of[j]] = j;
    }
    free(s.row_price);
    free(s.price);
    free(s.row_of);
    free(s.done);
    return ok ? 0 : -1;
}
