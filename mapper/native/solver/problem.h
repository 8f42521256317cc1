/* What Python asks of the solver; mirrored field by field in solver.py. */
#ifndef NUMAPLAN_PROBLEM_H
#define NUMAPLAN_PROBLEM_H

#include "solver.h"

/* n elements on k nodes. comm: cells, n x n, or rows as in struct matrix; cost: k x k, symmetric; load: n x loads;
 * target, base: loads x k, slack: loads, see struct rules; target is NULL when loads do not count; extra: k x n or
 * NULL, see struct graph; effort: 0 fast, 1 normal, 2 max. */
struct problem {
    int32_t n, k, loads, effort;
    const double *cells, *weight;
    const size_t *start;
    const int *to;
    const double *cost, *load, *target, *base, *slack, *extra;
    double tolerance;
    uint64_t seed;
};

static inline struct graph problem_graph(const struct problem *problem, const int *class) {
    struct matrix comm = {problem->n, problem->cells, problem->weight, problem->start, problem->to};
    return (struct graph){problem->n, comm, problem->load, problem->extra, class};
}

static inline struct rules problem_rules(const struct problem *problem, uint64_t *work) {
    struct rules rules = {problem->k,      problem->loads, true,           problem->target != NULL, problem->cost,
                          problem->target, problem->base,  problem->slack, problem->tolerance,      work,
                          UINT64_MAX};
    for (int x = 0; x < problem->k; x++)
        for (int y = 0; y < problem->k; y++) rules.flat &= problem->cost[x * problem->k + y] == (x == y ? 0.0 : 1.0);
    return rules;
}

/* The best placement found. start: `starts` placements (at least one) that all have the wanted seats; node: the result;
 * tolerance: what it keeps (what is asked for where that can be). Returns 0, or -1 without memory. */
int numaplan_solve(const struct problem *problem, int starts, const int *start, int *node, double *tolerance);

/* The least deviation of any node's load beyond the tolerance, then the least cost, with whole cells only. sizes: k,
 * threads of each node; node: a placement to start from, and the result. Returns 1 when proven, 0 when `steps` were not
 * enough, -1 without memory. */
int numaplan_exact(const struct problem *problem, const int *sizes, uint64_t steps, int *node);

#endif
