/* Placement of n elements on k nodes with exact seats: what the parts of the solver share.
 *
 * An element is a thread, or at a coarser level a bundle of 2^class threads that stay together. A node has a fixed
 * number of slots for each class, so every move is a swap of two elements of one class, and seats stay exact.
 */
#ifndef NUMAPLAN_SOLVER_H
#define NUMAPLAN_SOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_LEVELS = 24 };

/* Loops over whole rows, compiled for wide vectors as well; the sums come out the same, bit for bit. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

/* What is placed: comm is n x n, symmetric, zero diagonal; load n; class n, non-decreasing cost of a slot. */
struct graph {
    int n;
    const double *comm;
    const double *load;
    const int *class;
};

/* Where and by which rule. cost: k x k, symmetric, per unit of communication. target, tolerance: wanted load of each
 * node and how far off it may be, relative to the target; balanced: whether loads count at all. work: elements looked
 * at so far, allowed: how many may be; counted, not timed, so that the same input gives the same answer on any machine. */
struct rules {
    int k;
    bool flat;
    bool balanced;
    const double *cost;
    const double *target;
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

/* A placement and its running sums; gain[x * n + i] is what element i would cost on node x. */
struct state {
    const struct graph *graph;
    const struct rules *rules;
    int blocks;
    struct block *block;
    int *node, *member, *position;
    double *gain, *sum;
    double cost, imbalance;
};

/* To sum[i]: row[i]; factor * row[i]; factor * (left[i] - right[i]); factor * sign[i] * row[i]. */
void add_row(double *restrict sum, const double *restrict row, size_t n);
void add_scaled(double *restrict sum, double factor, const double *restrict row, size_t n);
void add_difference(double *restrict sum, double factor, const double *restrict left, const double *restrict right,
                    size_t n);
void add_signed(double *restrict sum, double factor, const double *restrict sign, const double *restrict row, size_t n);

/* sum[map[i]] += row[i]. */
void add_bundled(double *restrict sum, const int *restrict map, const double *restrict row, size_t n);

uint64_t rng_next(struct rng *rng);
int rng_below(struct rng *rng, int bound);

struct state *state_new(const struct graph *graph, const struct rules *rules, const int *node);
void state_free(struct state *state);
void state_set(struct state *state, const int *node);
double swap_cost(const struct state *state, int i, int j);
double swap_imbalance(const struct state *state, int i, int j);
void state_swap(struct state *state, int i, int j);
double node_imbalance(const struct rules *rules, int node, double load);

/* Whether (imbalance, cost) a is better than b: nearer to balance first, then cheaper. */
bool better(double imbalance_a, double cost_a, double imbalance_b, double cost_b);

/* Tabu search from the state's placement; leaves the best placement found in it. Returns false without memory. */
bool tabu_search(struct state *state, struct rng *rng, long iterations, long patience, bool loads_only);

/* Rearrange node[] within its slots by growing the nodes one after the other from random seeds. */
bool grow_placement(const struct graph *graph, int k, struct rng *rng, int *node);

/* Make node[] anew, with the same number of elements on each node, by recursive bisection; all of class 0. Only the
 * elements of `most` random nodes are placed anew when there are more nodes. wide: see bisect.h. Returns false without memory. */
bool bisect_placement(const struct graph *graph, const struct rules *rules, struct rng *rng, int most, bool wide,
                      int *node);

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
