/* What Python asks of the solver; mirrored field by field in solver.py. */
#ifndef NUMAPLAN_TASK_H
#define NUMAPLAN_TASK_H

#include "solver.h"

/* n elements on k nodes. comm: cells, n x n, or rows as in struct matrix; cost: k x k, symmetric; load: n x loads;
 * target, base: loads x k, slack: loads, see struct rules; target is NULL when loads do not count; extra: k x n or
 * NULL, see struct graph; effort: 0 fast, 1 normal, 2 max. */
struct task {
    int32_t n, k, loads, effort;
    const double *cells, *weight;
    const size_t *start;
    const int *to;
    const double *cost, *load, *target, *base, *slack, *extra;
    double tolerance;
    uint64_t seed;
};

static inline struct graph task_graph(const struct task *task, const int *class) {
    struct matrix comm = {task->n, task->cells, task->weight, task->start, task->to};
    return (struct graph){task->n, comm, task->load, task->extra, class};
}

static inline struct rules task_rules(const struct task *task, uint64_t *work) {
    struct rules rules = {task->k,         task->loads,  true,       task->target != NULL,
                          task->cost,      task->target, task->base, task->slack,
                          task->tolerance, work,         UINT64_MAX};
    for (int x = 0; x < task->k; x++)
        for (int y = 0; y < task->k; y++) rules.flat &= task->cost[x * task->k + y] == (x == y ? 0.0 : 1.0);
    return rules;
}

/* The best placement found. start: `starts` placements (at least one) that all have the wanted seats; node: the result;
 * outcome: the tolerance it keeps (the one asked for where that can be) and its cost. Returns 0, or -1 without memory. */
int numaplan_solve(const struct task *task, int starts, const int *start, int *node, double *outcome);

/* The least deviation of any node's load beyond the tolerance, then the least cost, with whole cells only. sizes: k,
 * threads of each node; node: a placement to start from, and the result. Returns 1 when proven, 0 when `steps` were not
 * enough, -1 without memory. */
int numaplan_exact(const struct task *task, const int *sizes, uint64_t steps, int *node, double *outcome);

#endif
