/* The least cut of a forest with so many vertices on either side, by dynamic programming over subtrees: exact, where
 * moves of single vertices would have to exchange whole branches. */
#include "bisect.h"

#include <math.h>
#include <stdlib.h>

static const size_t MOST_STEPS = 8000000; /* some milliseconds */

/* order: parents before children; parent: n, which stands for everything, for roots; talk: to the parent; size:
 * vertices of the subtree; had: of those that have joined so far. table: for each vertex and its side (0 or 1), by
 * vertices of the subtree on side 0, the least cut; choice: for each vertex and its parent's side, by vertices on side
 * 0 once its subtree has joined, what that takes of it: 2 * vertices on side 0 + its side. */
struct forest {
    const struct bundles *graph;
    int n, wanted, *order, *parent, *size, *had, *choice;
    double *talk, *table, *part, *sum;
    size_t *table_at, *choice_at;
};

/* Walks all trees; false where there is a circle. */
static bool walk(struct forest *f) {
    int known = 0;
    for (int i = 0; i < f->n; i++) f->parent[i] = -1;
    for (int root = 0; root < f->n; root++) {
        if (f->parent[root] >= 0) continue;
        f->parent[root] = f->n;
        f->order[known++] = root;
        for (int at = known - 1; at < known; at++) {
            int i = f->order[at];
            struct row row = matrix_row(&f->graph->comm, i);
            for (int e = 0; e < row.count; e++) {
                int j = row_column(row, e);
                if (row.weight[e] == 0 || j == f->parent[i]) continue;
                if (f->parent[j] >= 0) return false;
                f->parent[j] = i;
                f->talk[j] = row.weight[e];
                f->order[known++] = j;
            }
        }
    }
    return true;
}

/* So many of a number of vertices can be on side 0. */
static int counting(const struct forest *f, int vertices) { return vertices < f->wanted ? vertices : f->wanted; }

/* Finds out where each table goes; false where all this would take too long. */
static bool plan(struct forest *f) {
    size_t steps = 0, tables = 0, choices = 0;
    for (int i = 0; i <= f->n; i++) f->size[i] = i < f->n;
    for (int at = f->n - 1; at >= 0; at--) {
        int i = f->order[at], p = f->parent[i];
        steps += 2 * (size_t)(counting(f, f->size[i]) + 1) * (size_t)(counting(f, f->size[p]) + 1);
        f->size[p] += f->size[i];
        f->choice_at[i] = choices;
        choices += 2 * (size_t)(counting(f, f->size[p]) + 1);
        if (steps > MOST_STEPS) return false;
    }
    for (int i = 0; i <= f->n; i++) {
        f->table_at[i] = tables;
        tables += 2 * (size_t)(counting(f, f->size[i]) + 1);
    }
    f->table = malloc(tables * sizeof *f->table);
    f->choice = calloc(choices, sizeof *f->choice);
    f->part = malloc((size_t)(f->wanted + 1) * sizeof *f->part);
    f->sum = malloc((size_t)(f->wanted + 1) * sizeof *f->sum);
    *f->graph->work += steps + 30 * (uint64_t)f->n;
    return f->table && f->choice && f->part && f->sum;
}

static double *table_of(const struct forest *f, int i, int side) {
    return f->table + f->table_at[i] + (side ? (size_t)(counting(f, f->size[i]) + 1) : 0);
}

/* Where i's parent is on this side: i's subtree joins what the parent has so far. */
static void join(struct forest *f, int i, int side) {
    int p = f->parent[i], mine = counting(f, f->size[i]), theirs = counting(f, f->had[p]);
    int both = counting(f, f->had[p] + f->size[i]);
    double price = p == f->n ? 0 : f->talk[i], *table = table_of(f, p, side);
    const double *same = table_of(f, i, side), *other = table_of(f, i, !side);
    int *choice = f->choice + f->choice_at[i] + (side ? both + 1 : 0);
    for (int c = 0; c <= mine; c++) f->part[c] = fmin(same[c], other[c] + price);
    for (int c = 0; c <= both; c++) f->sum[c] = INFINITY;
    for (int a = 0; a <= theirs; a++) {
        for (int c = 0; c <= mine && a + c <= both; c++) {
            double sum = table[a] + f->part[c];
            if (sum < f->sum[a + c]) f->sum[a + c] = sum, choice[a + c] = c;
        }
    }
    for (int c = 0; c <= both; c++) {
        int taken = choice[c];
        table[c] = f->sum[c];
        choice[c] = 2 * taken + (same[taken] <= other[taken] + price ? side : !side);
    }
}

static void fill_tables(struct forest *f) {
    for (int i = 0; i < f->n; i++) {
        f->had[i] = 1;
        for (int c = 0; c < 2; c++) {
            if (c > counting(f, 1)) continue;
            table_of(f, i, 0)[c] = c ? 0 : INFINITY;
            table_of(f, i, 1)[c] = c ? INFINITY : f->graph->extra ? f->graph->extra[i] : 0;
        }
    }
    f->had[f->n] = 0;
    table_of(f, f->n, 0)[0] = 0;
    for (int at = f->n - 1; at >= 0; at--) {
        int i = f->order[at], p = f->parent[i];
        join(f, i, 0);
        if (p < f->n) join(f, i, 1);
        f->had[p] += f->size[i];
    }
}

/* What was chosen, from the whole down; had[i]: vertices on side 0 among those of i that are not seen to yet. */
static void read_sides(struct forest *f, signed char *side) {
    f->had[f->n] = f->wanted;
    for (int at = 0; at < f->n; at++) {
        int i = f->order[at], p = f->parent[i], above = p < f->n ? side[p] : 0, both = counting(f, f->size[p]);
        int chosen = f->choice[f->choice_at[i] + (size_t)(above ? both + 1 : 0) + (size_t)f->had[p]];
        side[i] = (signed char)(chosen % 2);
        f->had[i] = chosen / 2;
        f->had[p] -= chosen / 2;
        f->size[p] -= f->size[i]; /* as it was before i's subtree joined */
    }
}

bool cut_forest(const struct bundles *graph, struct rng *rng, bool shaken, int wanted, signed char *side) {
    size_t n = (size_t)graph->comm.n;
    struct forest f = {.graph = graph, .n = graph->comm.n, .wanted = wanted};
    f.order = malloc(4 * (n + 1) * sizeof *f.order);
    f.talk = malloc(n * sizeof *f.talk);
    f.table_at = malloc(2 * (n + 1) * sizeof *f.table_at);
    bool done = f.order && f.talk && f.table_at;
    for (size_t i = 0; done && i < n; i++) f.talk[i] = 0; /* of roots it stays so */
    if (done) {
        f.parent = f.order + n + 1;
        f.size = f.parent + n + 1;
        f.had = f.size + n + 1;
        f.choice_at = f.table_at + n + 1;
        done = walk(&f) && plan(&f);
    }
    for (size_t i = 0; done && shaken && i < n; i++) f.talk[i] *= 1 + (double)rng_below(rng, 1 << 20) / (1 << 20);
    if (done) {
        fill_tables(&f);
        read_sides(&f, side);
    }
    free(f.order);
    free(f.talk);
    free(f.table_at);
    free(f.table);
    free(f.choice);
    free(f.part);
    free(f.sum);
    return done;
}
