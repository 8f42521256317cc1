/* A pass of single moves over all nodes at once, within a slack of seats. */
#include "seating.h"

#include <math.h>
#include <stdlib.h>

/* What the best move of i costs that keeps to the slack; to: where it goes, negative where there is none. */
static double best_move(const struct seating *s, int i, int *to) {
    const double *gain = seating_gain(s, i);
    int weight = s->level->weight[i], own = s->node[i];
    double least = INFINITY;
    *to = -1;
    if (s->fill[own] - weight < s->size[own] - s->slack) return INFINITY;
    for (int x = 0; x < s->k; x++)
        if (gain[x] < least && x != own && s->fill[x] + weight <= s->size[x] + s->slack) least = gain[x], *to = x;
    return least - gain[own];
}

/* The node that is furthest beyond the slack, too full ones before too empty ones; negative: none. */
static int worst_node(const struct seating *s) {
    int worst = -1, most = 0;
    for (int x = 0; x < s->k; x++) {
        int off = s->fill[x] - s->size[x] - s->slack;
        if (off > most) most = off, worst = x;
    }
    for (int x = 0; worst < 0 && x < s->k; x++)
        if (s->fill[x] < s->size[x] - s->slack) worst = x;
    return worst;
}

/* The cheapest move for its weight that helps a node; to: where it goes. */
static int cheapest_help(const struct seating *s, int helped, int *to) {
    bool over = s->fill[helped] > s->size[helped];
    int chosen = -1;
    double least = INFINITY;
    for (int i = 0; i < s->n; i++) {
        int own = s->node[i], weight = s->level->weight[i];
        const double *gain = seating_gain(s, i);
        if (over ? own != helped : own == helped || s->fill[own] - weight < s->size[own] - s->slack) continue;
        for (int x = over ? 0 : helped; x < (over ? s->k : helped + 1); x++) {
            if (x == own || s->fill[x] + weight > s->size[x] + s->slack || (gain[x] - gain[own]) / weight >= least)
                continue;
            least = (gain[x] - gain[own]) / weight;
            chosen = i;
            *to = x;
        }
    }
    *s->rules->work += (uint64_t)s->n + (uint64_t)(s->n / s->k) * (over ? (uint64_t)s->k : 1);
    return chosen;
}

void seating_restore(struct seating *s) {
    for (int round = 0; round < 2 * s->n; round++) {
        int node = worst_node(s), to = -1, i = node < 0 ? -1 : cheapest_help(s, node, &to);
        if (i < 0) return; /* bundles may be too heavy to; there is a finer level yet */
        seating_move(s, i, to);
    }
}

static void set_key(struct seating *s, int i, double key) {
    s->key[i] = key;
    if (key < s->top[i / RUN]) s->top[i / RUN] = key;
    else s->stale[i / RUN] = true;
}

/* The bundle with the least key; negative: none has any. */
static int next_bundle(struct seating *s) {
    int best = -1, at;
    double least = INFINITY;
    for (int run = 0; run * RUN < s->n; run++) {
        if (s->top[run] >= least) continue; /* no key is under its run's */
        if (s->stale[run]) {
            s->top[run] = least_of(s->key + run * RUN, RUN, &at);
            s->stale[run] = false;
            *s->rules->work += RUN / 2;
            if (s->top[run] >= least) continue;
        }
        least = s->top[run];
        best = run;
    }
    *s->rules->work += (uint64_t)s->n / RUN + RUN / 2;
    if (best < 0) return -1;
    least_of(s->key + best * RUN, RUN, &at);
    return best * RUN + at;
}

/* The moved bundle keeps still from now on; those it talks to look again. */
static void after_move(struct seating *s, int i) {
    struct row row = matrix_row(&s->level->comm, i);
    s->locked[i] = true;
    set_key(s, i, INFINITY);
    for (int e = 0; e < row.count; e++) {
        int j = row_column(row, e);
        if (row.weight[e] != 0 && !s->locked[j])
            set_key(s, j, seating_least_elsewhere(s, j) - seating_gain(s, j)[s->node[j]]);
    }
    *s->rules->work += 3 * (uint64_t)row.count;
}

static void start_pass(struct seating *s) {
    for (int run = 0; run * RUN < s->n; run++) s->top[run] = INFINITY, s->stale[run] = false;
    for (int i = s->n; i % RUN; i++) s->key[i] = INFINITY;
    for (int i = 0; i < s->n; i++) {
        s->locked[i] = false;
        set_key(s, i, seating_least_elsewhere(s, i) - seating_gain(s, i)[s->node[i]]);
    }
    *s->rules->work += 4 * (uint64_t)s->n;
}

void seating_refine(struct seating *s) {
    int n = s->n, count = 0, kept = 0, patience = 16 + n / 10;
    if (patience > 200) patience = 200;
    seating_restore(s);
    start_pass(s);
    double best = s->cost;
    while (count < n && count - kept < patience) {
        int i = next_bundle(s), to = -1;
        if (i < 0) break;
        double cost = best_move(s, i, &to);
        *s->rules->work += 4 + (uint64_t)s->k / 2;
        if (to < 0 || cost > s->key[i]) { /* there is no room where it would go */
            set_key(s, i, to < 0 ? INFINITY : cost);
            continue;
        }
        s->from[count] = s->node[i];
        s->moved[count++] = i;
        seating_move(s, i, to);
        after_move(s, i);
        if (s->cost < best - 1e-12 * fabs(best)) best = s->cost, kept = count;
    }
    while (count > kept) count--, seating_move(s, s->moved[count], s->from[count]);
}
