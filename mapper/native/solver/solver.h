/* Placement of n elements on k nodes with exact seats: what the parts of the solver share.
 *
 * An element is a thread, or at a coarser level a bundle of 2^class threads that stay together. A node has a fixed
 * number of slots for each class, so every move is a swap of two elements of one class, and seats stay exact.
 */
#ifndef NUMAPLAN_SOLVER_H
#define NUMAPLAN_SOLVER_H

#include "matrix.h"

enum { MAX_LEVELS = 24 };

/* What is placed. load: n x rules->loads; extra: k x n, what each element costs on each node beside its communication
 * with the others here (what it says to pinned threads), or NULL; class: n. */
struct graph {
    int n;
    struct matrix comm;
    const double *load, *extra;
    const int *class;
};

/* Where and by which rule. cost: k x k, symmetric, per unit of communication. balanced: whether loads count at all;
 * loads: how many kinds there are (the whole run's, and each phase's); target, base: loads x k, wanted load of each
 * node and what is there before any element comes (base may be NULL); tolerance, slack: how far off a load may be,
 * relative to its target, and how much more each kind cannot help (slack may be NULL). work: elements looked at so
 * far, allowed: how many may be; counted, not timed, so that the same input gives the same answer on any machine. */
struct rules {
    int k, loads;
    bool flat, balanced;
    const double *cost, *target, *base, *slack;
    double tolerance;
    uint64_t *work, allowed;
};

struct rng {
    uint64_t state;
};

/* One block holds the slots of one class on one node: member[start .. start of the next block). */
struct block {
    int node, class, start, end;
};

/* A placement and its running sums; gain[x * n + i] is what element i would cost on node x, sum[l * k + x] the load of
 * kind l there. */
struct state {
    const struct graph *graph;
    const struct rules *rules;
    int blocks;
    struct block *block;
    int *node, *member, *position;
    double *gain, *sum;
    double cost, imbalance;
};

int rng_below(struct rng *rng, int bound);
/* 0 .. n-1 in random order. */
void rng_shuffle(struct rng *rng, int n, int *order);

struct state *state_new(const struct graph *graph, const struct rules *rules, const int *node);
void state_free(struct state *state);
void state_set(struct state *state, const int *node);
/* What a placement costs, as the state of it has it. */
double placement_cost(const struct graph *graph, const struct rules *rules, const int *node);

double state_swap_imbalance(const struct state *state, int i, int j);
void state_swap(struct state *state, int i, int j);

/* How far a load of one kind is beyond what is allowed on a node, and all kinds of a node together. */
double load_imbalance(const struct rules *rules, int kind, int node, double load);
double node_imbalance(const struct rules *rules, const double *sum, int node);

/* The largest relative deviation of any load from its target, beyond its kind's slack. */
double deviation(const struct rules *rules, const double *sum);

/* Whether (imbalance, cost) a is better than b: nearer to balance first, then cheaper. */
bool better(double imbalance_a, double cost_a, double imbalance_b, double cost_b);

/* Tabu search from the state's placement; leaves the best placement found in it. Returns false without memory. */
bool tabu_search(struct state *state, struct rng *rng, long iterations, long patience, bool loads_only);

/* Rearrange node[] within its slots by growing the nodes one after the other from random seeds. */
bool grow_placement(const struct graph *graph, int k, struct rng *rng, int *node);

/* How bisection works. nodes: so many random ones are placed anew when there are more; tries: cuts made of each part,
 * of which the least is taken; wide: see bisect.h; forests: whether, and how, they are cut exactly. */
struct bisecting {
    int nodes, tries;
    bool wide;
    enum { NEVER, PLAIN, SHAKEN } forests;
};

/* Make node[] anew, with the same number of elements on each node, by recursive bisection; all of class 0. Returns
 * false without memory. */
bool bisect_placement(const struct graph *graph, const struct rules *rules, struct rng *rng,
                      const struct bisecting *how, int *node);

/* Place the threads of two to four nodes that talk anew among these; all of class 0. Changes the state where that is
 * better. Returns false without memory. */
bool improve_part(struct state *state, struct rng *rng, long iterations, long patience, bool *improved);

/* How large placements evolve. members: of the pool; tries: as in struct bisecting; renewed: per cent of children that
 * have few nodes made anew, until `parts` attempts in a row brought nothing; idle: children in a row that are no
 * better than the best before a pool ends; lives: pools in a row that found nothing better before giving up; dearest:
 * what the dearest placement given costs. */
struct evolving {
    int members, tries, renewed, parts, idle, lives;
    double dearest;
};

/* Improve node[] by a pool of placements; all of class 0. Changes the state. Returns false without memory. */
bool evolve(struct state *state, struct rng *rng, const struct evolving *how, int *node);

/* How much work a run through the levels does. */
struct effort {
    int coarse_per_node; /* stop coarsening at so many elements a node */
    int coarse_tries;    /* fresh placements tried at the coarsest level */
    long coarse_iterations, coarse_patience, fine_iterations, fine_patience;
};

/* Improve node[] through coarser levels; fresh: only its slots count, the placement is made anew.
 * Returns false without memory. */
bool multilevel(const struct graph *graph, const struct rules *rules, const struct effort *effort, struct rng *rng,
                bool fresh, int *node);

#endif
