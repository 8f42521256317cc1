/* The search as a whole: given placements, fresh ones through the levels, then improvement of the best. */
#include "problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 64, LARGE = 128, HUGE_TASK = 2048 };

/* What an effort spends: placements made anew by bisection or through the levels; improvements tried, how many of them
 * in vain before giving up, and what each run through the levels does. */
struct budget {
    int bisections, fresh, rounds, idle;
    struct effort levels;
};

struct run {
    struct state *state; /* scratch at the finest level */
    struct rules *rules;
    struct rng rng;
    int *best, *trial;
    double best_cost, best_imbalance, dearest; /* dearest: what the dearest placement given costs */
};

static struct budget budget_for(int n, bool distances, int effort) {
    static const struct budget small[3] = {
        {2, 1, 6, 4, {4, 4, 60, 20, 10, 6}},
        {5, 3, 36, 12, {4, 3, 200, 60, 200, 32}},
        {16, 12, 800, 200, {4, 6, 800, 200, 2000, 400}},
    };
    struct budget budget = small[effort];
    if (effort == 0 && n > 64) budget.bisections = 6, budget.fresh = 0, budget.rounds = 3;
    if (effort == 1 && n <= 28) budget.rounds *= 3, budget.idle *= 3; /* so few that the optimum is in reach */
    int longer = n > 64 || effort == 0 ? 1 : n <= 32 && distances ? 4 : 2; /* distances make for more local optima */
    budget.levels.fine_iterations *= longer;
    budget.levels.fine_patience *= longer;
    return budget;
}

/* What a partitioner's time allows, in elements looked at, which are nanoseconds more or less. Full matrices take these
 * longer too. */
static uint64_t work_allowed(int n, uint64_t entries, int effort) {
    double size = pow(n / 512.0, 0.75), fullness = 1 + (double)entries / n / 512;
    double most = n > 2048 ? 8e9 : 7e9 * size; /* beyond, a minute is enough for anyone */
    if (n <= LARGE) return (uint64_t)(effort == 0 ? 30e6 * size : effort == 1 ? 120e6 * size : most);
    return (uint64_t)(effort == 0 ? 18e6 * size * fullness : effort == 1 ? 85e6 * size * fullness : most);
}

/* Keep the scratch placement if it is the best so far. */
static void keep(struct run *run) {
    const struct state *state = run->state;
    if (!better(state->imbalance, state->cost, run->best_imbalance, run->best_cost)) return;
    run->best_cost = state->cost;
    run->best_imbalance = state->imbalance;
    memcpy(run->best, state->node, (size_t)state->graph->n * sizeof *run->best);
}

/* Look for a placement within the tolerance, from the given one; least: the deviation of the nearest found, which
 * goes to nearest[]. Returns whether one is within. */
static bool seek_balance(struct run *run, int *nearest, double *least) {
    struct state *state = run->state;
    int n = state->graph->n;
    for (int try = 0; try < 6; try++) {
        memcpy(run->trial, nearest, (size_t)n * sizeof *nearest);
        for (int swap = 0; try > 0 && swap < 2 + n / 4; swap++) {
            int i = rng_below(&run->rng, n), j = rng_below(&run->rng, n), node = run->trial[i];
            run->trial[i] = run->trial[j];
            run->trial[j] = node;
        }
        state_set(state, run->trial);
        if (!tabu_search(state, &run->rng, 300 + (long)n, 60, true)) return false;
        if (deviation(state->rules, state->sum) < *least) {
            *least = deviation(state->rules, state->sum);
            memcpy(nearest, state->node, (size_t)n * sizeof *nearest);
        }
        if (*least <= state->rules->tolerance) return true;
    }
    return false;
}

/* Where no placement within the tolerance is found, widen it to what the nearest one found has and as much again as the
 * tolerance is of that: one thread that is too heavy for any node must not cost all communication for nothing. */
static bool find_tolerance(struct run *run, int starts, const int *start) {
    size_t n = (size_t)run->state->graph->n;
    int *nearest = malloc(n * sizeof *nearest);
    double least = INFINITY, wanted = run->rules->tolerance;
    for (int s = 0; nearest && s < starts; s++) {
        state_set(run->state, start + (size_t)s * n);
        if (deviation(run->rules, run->state->sum) >= least) continue;
        least = deviation(run->rules, run->state->sum);
        memcpy(nearest, run->state->node, n * sizeof *nearest);
    }
    if (nearest && least > wanted && !seek_balance(run, nearest, &least)) {
        do run->rules->tolerance = fmax(wanted, least * (1 - 1e-6)); /* is there anything nearer? */
        while (seek_balance(run, nearest, &least) && least > wanted);
        if (least > wanted) run->rules->tolerance = least * (1 + wanted) * (1 + 1e-12);
    }
    if (nearest) {
        state_set(run->state, nearest);
        keep(run);
    }
    free(nearest);
    return nearest != NULL;
}

/* Keep the best of the given placements, and find out what tolerance can be asked for. */
static bool weigh_starts(struct run *run, int starts, const int *start) {
    if (run->rules->balanced && !find_tolerance(run, starts, start)) return false;
    for (int s = 0; s < starts; s++) {
        state_set(run->state, start + (size_t)s * (size_t)run->state->graph->n);
        run->dearest = fmax(run->dearest, run->state->cost);
        keep(run);
    }
    return true;
}

static bool take_starts(struct run *run, const struct budget *budget, int starts, const int *start) {
    size_t n = (size_t)run->state->graph->n;
    bool done = weigh_starts(run, starts, start);
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

/* Two nodes of one size change all their threads: what single swaps cannot find where distances differ. */
static void exchange_nodes(struct run *run) {
    struct state *state = run->state;
    const struct block *a = &state->block[rng_below(&run->rng, state->blocks)];
    const struct block *b = &state->block[rng_below(&run->rng, state->blocks)];
    if (a == b || a->end - a->start != b->end - b->start) return;
    for (int slot = 0; slot < a->end - a->start; slot++)
        state_swap(state, state->member[a->start + slot], state->member[b->start + slot]);
}

/* One attempt: from the best placement through the levels again, with a few nodes split anew, or randomly kicked. */
static bool improve(struct run *run, const struct budget *budget, int round) {
    struct state *state = run->state;
    int n = state->graph->n, k = run->rules->k, kind = n <= 16 ? 2 : budget->fresh < 2 ? 0 : round % 3;
    if (kind == 0 && n <= budget->levels.coarse_per_node * k) kind = 2; /* too few for another level */
    memcpy(run->trial, run->best, (size_t)n * sizeof *run->trial);
    if (kind == 0) {
        if (!multilevel(state->graph, run->rules, &budget->levels, &run->rng, false, run->trial)) return false;
        state_set(state, run->trial);
        return true;
    }
    if (kind == 1) {
        int nodes = n / k < 5 ? k : 2 + rng_below(&run->rng, k < 6 ? k - 1 : 5);
        const bool wide = rng_below(&run->rng, 2);
        const struct bisecting how = {nodes, 1, wide, wide || n <= SMALL ? NEVER : SHAKEN};
        if (!bisect_placement(state->graph, run->rules, &run->rng, &how, run->trial)) return false;
    }
    state_set(state, run->trial);
    if (kind == 2 && !run->rules->flat && round % 2) exchange_nodes(run);
    if (kind == 2) kick(run, 2 + rng_below(&run->rng, 2 + n / 8));
    return tabu_search(state, &run->rng, budget->levels.fine_iterations, budget->levels.fine_patience, false);
}

/* The whole placement by bisection. */
static bool bisect(struct run *run, const struct budget *budget, int number) {
    struct state *state = run->state;
    const struct bisecting how = {state->rules->k, 1, number % 2,
                                  state->graph->n <= SMALL || number % 2 ? NEVER
                                  : number                               ? SHAKEN
                                                                         : PLAIN};
    memcpy(run->trial, run->best, (size_t)state->graph->n * sizeof *run->trial);
    if (!bisect_placement(state->graph, run->rules, &run->rng, &how, run->trial)) return false;
    state_set(state, run->trial);
    return tabu_search(state, &run->rng, budget->levels.fine_iterations, budget->levels.fine_patience, false);
}

static bool make_fresh(struct run *run, const struct budget *budget, int number) {
    struct state *state = run->state;
    if (number < budget->bisections) return bisect(run, budget, number);
    memcpy(run->trial, run->best, (size_t)state->graph->n * sizeof *run->trial);
    if (!multilevel(state->graph, run->rules, &budget->levels, &run->rng, true, run->trial)) return false;
    state_set(state, run->trial);
    return true;
}

/* Whether anything may still get better, and work is left. */
static bool go_on(const struct run *run) {
    return *run->rules->work < run->rules->allowed && (run->best_cost > 0 || run->best_imbalance > 0);
}

static bool search(struct run *run, int effort, int starts, const int *start) {
    const struct budget budget = budget_for(run->state->graph->n, !run->rules->flat, effort);
    if (!take_starts(run, &budget, starts, start)) return false;
    for (int fresh = 0; fresh < budget.bisections + budget.fresh && go_on(run); fresh++) {
        if (!make_fresh(run, &budget, fresh)) return false;
        keep(run);
    }
    for (int round = 0, idle = 0; round < budget.rounds && idle < budget.idle && go_on(run); round++) {
        double cost = run->best_cost, imbalance = run->best_imbalance;
        if (!improve(run, &budget, round)) return false;
        keep(run);
        idle = better(run->best_imbalance, run->best_cost, imbalance, cost) ? 0 : idle + 1;
    }
    return true;
}

static bool search_large(struct run *run, int effort, int starts, const int *start) {
    static const struct evolving efforts[3] = {
        {3, 1, 20, 6, 80, 1, 0}, {8, 1, 20, 5, 80, 2, 0}, {10, 1, 25, 12, 300, 3, 0}};
    struct evolving how = efforts[effort];
    if (run->state->graph->n > HUGE_TASK) { /* too many to be born badly and bred better in the time */
        how.tries = 4;
        if (effort < 2) how.members = 2 + effort;
    }
    if (!weigh_starts(run, starts, start)) return false;
    how.dearest = effort < 2 ? run->dearest : INFINITY;
    run->rules->allowed += *run->rules->work; /* finding what balance there can be must not cost the search */
    memcpy(run->trial, run->best, (size_t)run->state->graph->n * sizeof *run->trial);
    if (go_on(run) && !evolve(run->state, &run->rng, &how, run->trial)) return false;
    state_set(run->state, run->trial);
    keep(run);
    return true;
}

int numaplan_solve(const struct problem *problem, int starts, const int *start, int *node, double *tolerance) {
    size_t n = (size_t)problem->n;
    int effort = problem->effort, result = -1, *class = calloc(n, sizeof *class);
    uint64_t work = 0;
    struct graph graph = problem_graph(problem, class);
    struct rules rules = problem_rules(problem, &work);
    struct matrix thin = {0};
    struct run run = {NULL,     &rules, {problem->seed}, malloc(n * sizeof(int)), malloc(n * sizeof(int)), INFINITY,
                      INFINITY, 0};
    bool ready = class && run.best && run.trial && matrix_thinned(&graph.comm, &thin);
    if (ready && thin.start) graph.comm = thin;
    if (ready) rules.allowed = work_allowed(problem->n, matrix_size(&graph.comm), effort);
    if (ready && (run.state = state_new(&graph, &rules, start))) {
        if ((problem->n > LARGE ? search_large : search)(&run, effort, starts, start)) {
            memcpy(node, run.best, n * sizeof *node);
            *tolerance = rules.tolerance;
            result = 0;
        }
    }
    state_free(run.state);
    matrix_free(&thin);
    free(class);
    free(run.best);
    free(run.trial);
    return result;
}
