/* Large placements: a few made afresh by bisection, then combined again and again (the idea of [KAFFPAE]): what two of
 * them agree on stays together while the better one is improved through the levels, and a better child takes the place
 * of the worst. */
#include "seating.h"

#include <stdlib.h>
#include <string.h>

enum { SWAPS = 30, PATIENCE = 10, BUSY = 30 };

static const double DULL = 0.99; /* of what the dearest placement given costs */

/* node: count x n; all: the threads as bundles of one; state: scratch. */
struct pool {
    const struct evolving *how;
    struct seating seating;
    struct bundles all;
    struct state *state;
    struct rng *rng;
    int n, count, *node, *child, *size;
    double *cost, *imbalance, child_cost, child_imbalance;
    int *best;
    double best_cost, best_imbalance;
    bool dull; /* nothing can be gained, as where all talk to all alike */
};

static int *member_of(const struct pool *pool, int c) { return pool->node + (size_t)c * (size_t)pool->n; }

static bool pool_new(struct pool *pool, const struct evolving *how, struct state *state, struct rng *rng) {
    size_t n = (size_t)state->graph->n, members = (size_t)how->members;
    *pool = (struct pool){.how = how, .state = state, .rng = rng, .n = state->graph->n};
    pool->all = (struct bundles){.comm = state->graph->comm,
                                 .weight = malloc(n * sizeof(int)),
                                 .sets = state->graph->extra ? state->rules->k : 0,
                                 .extra = (double *)state->graph->extra,
                                 .work = state->rules->work};
    pool->node = malloc(members * n * sizeof *pool->node);
    pool->child = malloc(n * sizeof *pool->child);
    pool->size = calloc((size_t)state->rules->k, sizeof *pool->size);
    pool->cost = malloc(members * sizeof *pool->cost);
    pool->imbalance = malloc(members * sizeof *pool->imbalance);
    if (!pool->all.weight || !pool->node || !pool->child || !pool->size || !pool->cost || !pool->imbalance)
        return false;
    for (size_t i = 0; i < n; i++) {
        pool->all.weight[i] = 1;
        pool->size[state->node[i]]++;
    }
    return seating_allocate(&pool->seating, pool->n, state->rules, pool->size);
}

static void pool_free(struct pool *pool) {
    seating_free(&pool->seating);
    free(pool->all.weight);
    free(pool->node);
    free(pool->child);
    free(pool->size);
    free(pool->cost);
    free(pool->imbalance);
}

/* Improve the child by swaps; where loads count these bring it into balance first. */
static bool swap_child(struct pool *pool, long iterations) {
    struct state *state = pool->state;
    state_set(state, pool->child);
    if (!tabu_search(state, pool->rng, iterations, PATIENCE, false)) return false;
    memcpy(pool->child, state->node, (size_t)pool->n * sizeof *pool->child);
    return true;
}

static void put(struct pool *pool, int c) {
    memcpy(member_of(pool, c), pool->child, (size_t)pool->n * sizeof *pool->child);
    pool->cost[c] = pool->child_cost;
    pool->imbalance[c] = pool->child_imbalance;
}

/* Remember the child if it is the best so far. */
static bool keep(struct pool *pool) {
    if (!better(pool->child_imbalance, pool->child_cost, pool->best_imbalance, pool->best_cost)) return false;
    pool->best_cost = pool->child_cost;
    pool->best_imbalance = pool->child_imbalance;
    memcpy(pool->best, pool->child, (size_t)pool->n * sizeof *pool->best);
    return true;
}

/* Put the child in place of the worst, where it is better. */
static void take_in(struct pool *pool) {
    const double *imbalance = pool->imbalance, *cost = pool->cost;
    int worst = 0;
    for (int c = 1; c < pool->count; c++)
        if (better(imbalance[worst], cost[worst], imbalance[c], cost[c])) worst = c;
    if (better(pool->child_imbalance, pool->child_cost, imbalance[worst], cost[worst])) put(pool, worst);
}

/* What the child costs, and how far out of balance it is. */
static void weigh(struct pool *pool) {
    const struct state *state = pool->state;
    pool->child_imbalance = 0;
    if (state->rules->balanced) {
        state_set(pool->state, pool->child);
        pool->child_imbalance = state->imbalance;
    }
    pool->child_cost = placement_cost(state->graph, state->rules, pool->child);
}

/* The child through the levels, with what its parents agree on kept together. */
static bool improve_child(struct pool *pool, double wide, const int *first, const int *second) {
    return seating_improve(&pool->seating, &pool->all, pool->rng, wide, first, second, pool->child) &&
           (!pool->state->rules->balanced || swap_child(pool, SWAPS));
}

/* A placement made anew by bisection. */
static bool add_fresh(struct pool *pool, int number) {
    struct state *state = pool->state;
    const struct bisecting how = {state->rules->k, pool->how->tries, false, number ? SHAKEN : PLAIN};
    memcpy(pool->child, pool->best, (size_t)pool->n * sizeof *pool->child);
    if (!bisect_placement(state->graph, state->rules, pool->rng, &how, pool->child)) return false;
    bool busy = matrix_size(&pool->all.comm) > BUSY * (uint64_t)pool->n; /* swaps are quick where many talk to many */
    if (busy && !swap_child(pool, 1)) return false;
    pool->dull = busy && state->cost > DULL * pool->how->dearest;
    if (!pool->dull && !improve_child(pool, 1, pool->child, pool->child)) return false;
    weigh(pool);
    put(pool, number);
    keep(pool);
    return true;
}

/* Few nodes of the child anew, until some attempts in a row brought nothing. */
static bool renew_parts(struct pool *pool) {
    struct state *state = pool->state;
    const struct rules *rules = state->rules;
    state_set(state, pool->child);
    for (int vain = 0; vain < pool->how->parts && *rules->work < rules->allowed;) {
        bool improved;
        if (!improve_part(state, pool->rng, rules->balanced ? SWAPS : 0, PATIENCE, &improved)) return false;
        vain = improved ? 0 : vain + 1;
    }
    memcpy(pool->child, state->node, (size_t)pool->n * sizeof *pool->child);
    return true;
}

/* One child, of two parents or of one. */
static bool breed(struct pool *pool) {
    static const double wide[] = {0, 0.5, 1, 2}; /* trees want little slack, meshes much */
    int a = rng_below(pool->rng, pool->count), b = rng_below(pool->rng, pool->count - 1);
    b += b >= a;
    if (better(pool->imbalance[b], pool->cost[b], pool->imbalance[a], pool->cost[a])) a = a + b, b = a - b, a = a - b;
    memcpy(pool->child, member_of(pool, a), (size_t)pool->n * sizeof *pool->child);
    if (rng_below(pool->rng, 100) < pool->how->renewed) return renew_parts(pool);
    return improve_child(pool, wide[rng_below(pool->rng, 4)], member_of(pool, a), member_of(pool, b));
}

/* New placements until the pool is full, or half of what is left of the work is done. */
static bool fill(struct pool *pool) {
    const struct rules *rules = pool->state->rules;
    const uint64_t most = *rules->work + (rules->allowed - *rules->work) / 2;
    while (pool->count < pool->how->members && (!pool->count || *rules->work < most)) {
        if (!add_fresh(pool, pool->count)) return false;
        pool->count++;
        if (pool->dull) break;
    }
    return true;
}

/* Whether all members are as good as the best: there may be nothing better. */
static bool alike(const struct pool *pool) {
    for (int c = 0; c < pool->count; c++)
        if (pool->imbalance[c] > pool->best_imbalance + 1e-11 || pool->cost[c] > pool->best_cost * (1 + 1e-9))
            return false;
    return true;
}

/* One pool, from new placements until its children are no better any more. */
static bool live(struct pool *pool) {
    const struct rules *rules = pool->state->rules;
    if (!fill(pool)) return false;
    for (int idle = 0; pool->count > 1 && !pool->dull && idle < pool->how->idle / (alike(pool) ? 5 : 1) &&
                       *rules->work < rules->allowed;) {
        if (!breed(pool)) return false;
        weigh(pool);
        idle = keep(pool) ? 0 : idle + 1;
        take_in(pool);
    }
    return true;
}

/* Further pools, with the best so far in them, while that finds anything. */
static bool live_on(struct pool *pool) {
    const struct rules *rules = pool->state->rules;
    for (int vain = 0; vain < pool->how->lives && !pool->dull && *rules->work < rules->allowed;) {
        double cost = pool->best_cost, imbalance = pool->best_imbalance;
        if (!live(pool)) return false;
        vain = better(pool->best_imbalance, pool->best_cost, imbalance, cost) ? 0 : vain + 1;
        memcpy(pool->child, pool->best, (size_t)pool->n * sizeof *pool->child);
        weigh(pool);
        put(pool, 0);
        pool->count = 1;
    }
    return true;
}

bool evolve(struct state *state, struct rng *rng, const struct evolving *how, int *node) {
    struct pool pool;
    state_set(state, node);
    bool done = pool_new(&pool, how, state, rng);
    pool.best = node;
    pool.best_cost = state->cost;
    pool.best_imbalance = state->imbalance;
    done = done && live_on(&pool);
    pool_free(&pool);
    return done;
}
