/* A placement of bundles with what each would cost on every node, kept up to date move by move. */
#include "seating.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool seating_allocate(struct seating *s, int n, const struct rules *rules, const int *size) {
    size_t count = (size_t)n, k = (size_t)rules->k, stride = (k + 3) / 4 * 4;
    *s = (struct seating){.rules = rules, .size = size, .k = rules->k, .stride = stride};
    s->gain = malloc(count * stride * sizeof *s->gain);
    s->low = malloc(count * sizeof *s->low);
    s->key = malloc((count / RUN + 1) * RUN * sizeof *s->key);
    s->top = malloc((count / RUN + 1) * sizeof *s->top);
    s->step = calloc(stride, sizeof *s->step);
    int **numbers[] = {&s->node, &s->low_at, &s->moved, &s->from, &s->order, &s->queue, &s->position};
    bool **flags[] = {&s->locked, &s->queued, &s->stale}, done = s->gain && s->low && s->key && s->top && s->step;
    for (size_t a = 0; a < sizeof numbers / sizeof *numbers; a++)
        done &= (*numbers[a] = malloc(count * sizeof(int))) != NULL;
    for (size_t a = 0; a < sizeof flags / sizeof *flags; a++) done &= (*flags[a] = calloc(count, sizeof(bool))) != NULL;
    s->fill = malloc(k * sizeof *s->fill);
    s->first = malloc(k * sizeof *s->first);
    s->count = malloc(k * sizeof *s->count);
    s->member = malloc((count + 2 * k) * sizeof *s->member); /* a node may hold one too many for a while */
    return done && s->fill && s->first && s->count && s->member;
}

void seating_free(struct seating *s) {
    void *held[] = {s->gain,  s->low,  s->key,   s->top,   s->step,     s->node,   s->low_at,
                    s->moved, s->from, s->order, s->queue, s->position, s->locked, s->queued,
                    s->stale, s->fill, s->first, s->count, s->member};
    for (size_t a = 0; a < sizeof held / sizeof *held; a++) free(held[a]);
}

static void sum_gain(struct seating *s, int i) {
    const struct rules *rules = s->rules;
    size_t k = (size_t)s->k;
    const double *extra = s->level->extra;
    struct row row = matrix_row(&s->level->comm, i);
    double *gain = seating_gain(s, i);
    for (size_t x = k; x < s->stride; x++) gain[x] = INFINITY;
    for (size_t x = 0; x < k; x++) gain[x] = extra ? extra[x * (size_t)s->n + (size_t)i] : 0;
    for (int e = 0; e < row.count; e++) {
        size_t there = (size_t)s->node[row_column(row, e)];
        if (rules->flat) gain[there] -= row.weight[e];
        for (size_t x = 0; !rules->flat && x < k; x++) gain[x] += row.weight[e] * rules->cost[there * k + x];
    }
}

void seating_start(struct seating *s, const struct bundles *level, int slack, const int *node) {
    s->level = level;
    s->slack = slack;
    s->n = level->comm.n;
    s->cost = 0;
    memcpy(s->node, node, (size_t)s->n * sizeof *node);
    memset(s->fill, 0, (size_t)s->k * sizeof *s->fill);
    for (int i = 0; i < s->n; i++) {
        s->fill[node[i]] += level->weight[i];
        s->low_at[i] = -1;
        s->locked[i] = s->queued[i] = false;
        sum_gain(s, i);
    }
    uint64_t k = (uint64_t)s->k, each = s->rules->flat ? 1 : 1 + k / 4;
    *s->rules->work += matrix_size(&level->comm) * each + (uint64_t)s->n * (8 + k / 2);
}

/* On flat distances only two nodes change for those whom i talks to. */
static void move_flat(struct seating *s, struct row row, int a, int b) {
    const size_t stride = s->stride;
    for (int e = 0; e < row.count; e++) {
        int j = row_column(row, e);
        double *gain = s->gain + (size_t)j * stride;
        gain[a] += row.weight[e];
        gain[b] -= row.weight[e];
        if (s->low_at[j] == a) s->low_at[j] = -1;
        else if (s->low_at[j] >= 0 && s->node[j] != b && gain[b] < s->low[j]) s->low[j] = gain[b], s->low_at[j] = b;
    }
}

static void move_priced(struct seating *s, struct row row, int a, int b) {
    size_t k = (size_t)s->k;
    const double *from = s->rules->cost + (size_t)a * k, *to = s->rules->cost + (size_t)b * k;
    double *step = s->step;
    for (size_t x = 0; x < k; x++) step[x] = to[x] - from[x];
    for (int e = 0; e < row.count; e++) {
        int j = row_column(row, e);
        double *gain = seating_gain(s, j), weight = row.weight[e];
        for (size_t x = 0; x < s->stride; x++) gain[x] += weight * step[x];
        s->low_at[j] = -1;
    }
}

void seating_move(struct seating *s, int i, int x) {
    const double *gain = seating_gain(s, i);
    int from = s->node[i];
    struct row row = matrix_row(&s->level->comm, i);
    s->cost += gain[x] - gain[from];
    s->fill[from] -= s->level->weight[i];
    s->fill[x] += s->level->weight[i];
    s->node[i] = x;
    s->low_at[i] = -1;
    *s->rules->work += 16 + (uint64_t)row.count * (s->rules->flat ? 2 : 2 + (uint64_t)s->k / 4);
    if (s->rules->flat) move_flat(s, row, from, x);
    else move_priced(s, row, from, x);
}

WIDE double least_of(const double *value, size_t count, int *at) {
    four least = *(const four *)value;
    mask number = {0, 1, 2, 3}, best = number;
    for (size_t x = 4; x < count; x += 4) {
        four next = *(const four *)(value + x);
        mask less = next < least;
        number += 4;
        least = (four)(((mask)next & less) | ((mask)least & ~less));
        best = (number & less) | (best & ~less);
    }
    double most = least[0];
    int64_t chosen = best[0];
    for (int lane = 1; lane < 4; lane++)
        if (least[lane] < most || (least[lane] == most && best[lane] < chosen)) most = least[lane], chosen = best[lane];
    *at = most < INFINITY ? (int)chosen : -1;
    return most;
}

double seating_least_but(struct seating *s, int i, int other, int *at) {
    double *gain = seating_gain(s, i), here = gain[s->node[i]], there = gain[other];
    gain[s->node[i]] = gain[other] = INFINITY;
    double least = least_of(gain, s->stride, at);
    gain[other] = there;
    gain[s->node[i]] = here;
    *s->rules->work += 4 + (uint64_t)s->k / 2;
    return least;
}
