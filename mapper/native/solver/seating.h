/* Improvement of a whole placement by moves of single bundles: what its parts share. */
#ifndef NUMAPLAN_SEATING_H
#define NUMAPLAN_SEATING_H

#include "bundles.h"

enum { RUN = 64 }; /* bundles that share an entry of struct seating's top[] */

/* A placement of bundles on nodes that may hold `slack` threads more or less than `size` says.
 *
 * gain[i * stride + x]: what bundle i costs on node x, less an amount that is the same for all x; low[i]: the least of
 * these on another node than its own, which is low_at[i] (negative: not known). cost: relative to the start. The
 * others are scratch for the passes and chains. */
struct seating {
    const struct bundles *level;
    const struct rules *rules;
    const int *size;
    int n, k, slack;
    size_t stride;
    int *node, *fill, *low_at;
    double *gain, *low, *step, cost;
    double *key, *top;
    int *moved, *from, *order, *queue, *member, *position, *first, *count;
    bool *locked, *queued, *stale;
};

static inline double *seating_gain(const struct seating *seating, int i) {
    return seating->gain + (size_t)i * seating->stride;
}

/* Room for n bundles; size: threads wanted on each node. False without memory. */
bool seating_allocate(struct seating *seating, int n, const struct rules *rules, const int *size);
void seating_free(struct seating *seating);

/* Take over a level (of at most as many bundles as there is room for) and a placement of it. */
void seating_start(struct seating *seating, const struct bundles *level, int slack, const int *node);

void seating_move(struct seating *seating, int i, int x);

/* The least of `count` numbers, a multiple of four; at: where the first such is, negative where all are INFINITY. */
double least_of(const double *value, size_t count, int *at);

/* The least that i would cost on a node that is neither its own nor the other; at: which. */
double seating_least_but(struct seating *seating, int i, int other, int *at);

/* low[i], made known where it is not. */
static inline double seating_least_elsewhere(struct seating *s, int i) {
    if (s->low_at[i] < 0) s->low[i] = seating_least_but(s, i, s->node[i], &s->low_at[i]);
    return s->low[i];
}

/* Bring every node within the slack, as cheaply as single moves can. */
void seating_restore(struct seating *seating);

/* A pass of single moves within the slack, undone back to its best point ([FM], k-way). */
void seating_refine(struct seating *seating);

/* Chains of moves that end where they began, so that seats stay exact: from everyone, and again from those near a
 * change. Only bundles of one weight take part in a chain. */
void seating_chain(struct seating *seating, struct rng *rng);

/* Improve node[] through coarser levels in which nobody is bundled with one who is elsewhere in either parent; wide:
 * how many of the heaviest bundle a node may hold too much or too little on the way; 0: seats stay exact, and what was
 * exact gets no dearer. False without memory. */
bool seating_improve(struct seating *seating, const struct bundles *threads, struct rng *rng, double wide,
                     const int *first, const int *second, int *node);

#endif
