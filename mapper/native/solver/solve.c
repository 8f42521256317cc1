/* The search as a whole: given placements, fresh ones through the levels, then improvement of the best. */
#include "solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What each effort spends; per level of `effort`: fast, normal, max. */
struct budget {
    int fresh, rounds;    /* placements made anew; improvements tried */
    int idle;             /* improvements in vain before giving up */
    struct effort levels;
};

struct run {
    struct state *state; /* scratch at the finest level */
    struct rules *rules;
    struct rng rng;
    int *best, *trial;
    double best_cost, best_imbalance;
};

static struct budget budget_for(int n, int effort) {
    static const struct budget table[3] = {
        {2, 6, 4, {4, 4, 60, 20, 10, 6}},
        {4, 40, 20, {4, 3, 200, 60, 200, 40}},
        {16, 800, 200, {4, 6, 800, 200, 2000, 400}},
    };
    struct budget budget = table[effort < 0 ? 0 : effort > 2 ? 2 : effort];
    if (n <= 64 && effort > 0) budget.levels.fine_iterations *= 4, budget.levels.fine_patience *= 4;
    return budget;
}

/* Keep the scratch placement if it is the best so far. */
static bool keep(struct run *run) {
    const struct state *state = run->state;
    if (run->rules->limit > state->imbalance && run->rules->balanced && state->imbalance < run->best_imbalance)
        run->rules->limit = state->imbalance;
    if (!better(run->rules, state->imbalance, state->cost, run->best_imbalance, run->best_cost)) return false;
    run->best_cost = state->cost;
    run->best_imbalance = state->imbalance;
    memcpy(run->best, state->node, (size_t)state->graph->n * sizeof *run->best);
    return true;
}

/* Find the least imbalance there is, starting from the best so far and from heaviest-first placements. */
static bool find_limit(struct run *run, int tries) {
    struct state *state = run->state;
    size_t n = (size_t)state->graph->n;
    double least = run->best_imbalance;
    int *balanced = malloc(n * sizeof *balanced);
    if (!balanced) return false;
    memcpy(balanced, run->best, n * sizeof *balanced);
    for (int try = 0; try < tries && least > 0; try++) {
        memcpy(run->trial, balanced, n * sizeof *run->trial);
        for (size_t kick = 0; try > 0 && kick < 2 + n / 4; kick++) { /* swap random elements */
            int i = rng_below(&run->rng, (int)n), j = rng_below(&run->rng, (int)n), node = run->trial[i];
            run->trial[i] = run->trial[j];
            run->trial[j] = node;
        }
        state_set(state, run->trial);
        if (!tabu_search(state, &run->rng, 300 + (long)n, 60, true)) break;
        if (state->imbalance < least) {
            least = state->imbalance;
            memcpy(balanced, state->node, n * sizeof *balanced);
        }
    }
    run->rules->limit = least > 1e-12 ? least * 1.001 : 0;
    state_set(state, balanced);
    free(balanced);
    keep(run);
    return true;
}

static bool take_starts(struct run *run, const struct budget *budget, int starts, const int *start) {
    size_t n = (size_t)run->state->graph->n;
    bool done = true;
    for (int s = 0; s < starts; s++) {
        state_set(run->state, start + (size_t)s * n);
        keep(run);
    }
    if (run->rules->balanced && run->best_imbalance > 0) done = find_limit(run, 8);
    for (int s = 0; done && s < starts; s++) {
        state_set(run->state, start + (size_t)s * n);
        if (n > 32 && run->state->cost > 1.2 * run->best_cost) continue; /* a long way down, for little */
        done = tabu_search(run->state, &run->rng, budget->levels.fine_iterations, budget->levels.fine_patience, false);
        keep(run);
    }
    return done;
}

static void kick(struct run *run, int swaps) {
    struct state *state = run->state;
    int n = state->graph->n;
    for (int swap = 0; swap < swaps; swap++) {
        int i = rng_below(&run->rng, n), j = rng_below(&run->rng, n);
        if (state->node[i] != state->node[j]) state_swap(state, i, j);
    }
}

/* One attempt: from the best placement through the levels again, or with a few random swaps. */
static bool improve(struct run *run, const struct budget *budget, int round) {
    struct state *state = run->state;
    size_t n = (size_t)state->graph->n;
    if (n > 16 && (budget->fresh < 4 || round % 2 == 0)) {
        memcpy(run->trial, run->best, n * sizeof *run->trial);
        if (!multilevel(state->graph, run->rules, &budget->levels, &run->rng, false, run->trial)) return false;
        state_set(state, run->trial);
    } else {
        state_set(state, run->best);
        kick(run, 2 + rng_below(&run->rng, 2 + (int)n / 8));
        if (!tabu_search(state, &run->rng, budget->levels.fine_iterations, budget->levels.fine_patience, false))
            return false;
    }
    return true;
}

static bool search(struct run *run, const struct budget *budget, int starts, const int *start) {
    size_t bytes = (size_t)run->state->graph->n * sizeof *run->trial;
    if (!take_starts(run, budget, starts, start)) return false;
    for (int fresh = 0; fresh < budget->fresh; fresh++) {
        memcpy(run->trial, run->best, bytes);
        if (!(fresh % 2 ? multilevel(run->state->graph, run->rules, &budget->levels, &run->rng, true, run->trial)
                        : bisect_placement(run->state->graph, run->rules, &run->rng, run->trial)))
            return false;
        state_set(run->state, run->trial);
        if (fresh % 2 == 0 && !tabu_search(run->state, &run->rng, budget->levels.fine_iterations,
                                           budget->levels.fine_patience, false))
            return false;
        keep(run);
    }
    for (int round = 0, idle = 0; round < budget->rounds && idle < budget->idle; round++) {
        if (!improve(run, budget, round)) return false;
        idle = keep(run) ? 0 : idle + 1;
    }
    return true;
}

/* Place n threads on k nodes. comm: n x n, symmetric, zero diagonal; cost: k x k, symmetric; load: n; target: k, or
 * NULL when loads do not count; start: `starts` placements (at least one) that all have the wanted seats; node: the
 * result; outcome: its imbalance and cost. Returns 0, or -1 without memory. */
int numaplan_solve(int n, int k, const double *comm, const double *cost, const double *load, const double *target,
                   double tolerance, int starts, const int *start, uint64_t seed, int effort, int *node,
                   double *outcome) {
    int result = -1, *class = calloc((size_t)n, sizeof *class);
    struct graph graph = {n, comm, load, class};
    struct rules rules = {k, true, target != NULL, cost, target ? target : load, tolerance, 0};
    for (int x = 0; x < k; x++)
        for (int y = 0; y < k; y++) rules.flat &= cost[x * k + y] == (x == y ? 0.0 : 1.0);
    struct run run = {NULL, &rules, {seed}, malloc((size_t)n * sizeof(int)), malloc((size_t)n * sizeof(int)),
                      INFINITY, INFINITY};
    if (class && run.best && run.trial && (run.state = state_new(&graph, &rules, start))) {
        struct budget budget = budget_for(n, effort);
        if (search(&run, &budget, starts, start)) {
            memcpy(node, run.best, (size_t)n * sizeof *node);
            outcome[0] = run.best_imbalance;
            outcome[1] = run.best_cost;
            result = 0;
        }
    }
    state_free(run.state);
    free(class);
    free(run.best);
    free(run.trial);
    return result;
}
