/* A placement with the sums that make the cost of a swap known at once. */
#include "solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t rng_next(struct rng *rng) {
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15u); /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int rng_below(struct rng *rng, int bound) {
    return (int)(((rng_next(rng) >> 32) * (uint64_t)bound) >> 32);
}

/* Linear so that small excesses are not free, and quadratic so that of two evils the most even is the lesser. */
double node_imbalance(const struct rules *rules, int node, double load) {
    double target = rules->target[node];
    if (!(target > 0)) return 0;
    double excess = fabs(load - target) / target - rules->tolerance;
    return excess > 1e-12 ? excess + 8 * excess * excess : 0;
}

bool better(double imbalance_a, double cost_a, double imbalance_b, double cost_b) {
    if (fabs(imbalance_a - imbalance_b) > 1e-11) return imbalance_a < imbalance_b;
    return cost_a < cost_b - 1e-13 * fabs(cost_b);
}

static int order_key(const struct state *state, int i) {
    return state->node[i] * MAX_LEVELS + state->graph->class[i];
}

/* Sort the elements into blocks by counting. */
static bool lay_out(struct state *state) {
    int n = state->graph->n, keys = state->rules->k * MAX_LEVELS;
    int *start = calloc((size_t)keys + 1, sizeof *start);
    if (!start) return false;
    for (int i = 0; i < n; i++) start[order_key(state, i) + 1]++;
    state->blocks = 0;
    for (int key = 0; key < keys; key++) {
        if (start[key + 1])
            state->block[state->blocks++] = (struct block){key / MAX_LEVELS, key % MAX_LEVELS, start[key],
                                                           start[key] + start[key + 1]};
        start[key + 1] += start[key];
    }
    for (int i = 0; i < n; i++) {
        int p = start[order_key(state, i)]++;
        state->member[p] = i;
        state->position[i] = p;
    }
    free(start);
    return true;
}

static void sum_up(struct state *state) {
    const struct graph *graph = state->graph;
    const struct rules *rules = state->rules;
    int n = graph->n, k = rules->k;
    *rules->work += (uint64_t)n * (uint64_t)n * (rules->flat ? 1 : (uint64_t)k) / 4; /* vectors of four */
    memset(state->gain, 0, (size_t)n * (size_t)k * sizeof *state->gain);
    memset(state->sum, 0, (size_t)k * sizeof *state->sum);
    for (int j = 0; j < n; j++) {
        const double *row = graph->comm + (size_t)j * (size_t)n;
        state->sum[state->node[j]] += graph->load[j];
        if (rules->flat) { /* first the sums local to each node; below they become remote ones */
            add_row(state->gain + (size_t)state->node[j] * (size_t)n, row, (size_t)n);
            continue;
        }
        for (int x = 0; x < k; x++) {
            double cost = rules->cost[x * k + state->node[j]];
            if (cost != 0) add_scaled(state->gain + (size_t)x * (size_t)n, cost, row, (size_t)n);
        }
    }
    if (rules->flat)
        for (int i = 0; i < n; i++) {
            double all = 0;
            double *gain = state->gain + i;
            for (int x = 0; x < k; x++) all += gain[(size_t)x * (size_t)n];
            for (int x = 0; x < k; x++) gain[(size_t)x * (size_t)n] = all - gain[(size_t)x * (size_t)n];
        }
    state->cost = state->imbalance = 0;
    for (int i = 0; i < n; i++) state->cost += state->gain[(size_t)state->node[i] * (size_t)n + (size_t)i] / 2;
    for (int x = 0; rules->balanced && x < k; x++) state->imbalance += node_imbalance(rules, x, state->sum[x]);
}

struct state *state_new(const struct graph *graph, const struct rules *rules, const int *node) {
    size_t n = (size_t)graph->n, k = (size_t)rules->k;
    struct state *state = calloc(1, sizeof *state);
    if (!state) return NULL;
    state->graph = graph;
    state->rules = rules;
    state->block = malloc((n < k * MAX_LEVELS ? n : k * MAX_LEVELS) * sizeof *state->block);
    state->node = malloc(n * sizeof *state->node);
    state->member = malloc(n * sizeof *state->member);
    state->position = malloc(n * sizeof *state->position);
    state->gain = malloc(n * k * sizeof *state->gain);
    state->sum = malloc(k * sizeof *state->sum);
    if (state->block && state->node && state->member && state->position && state->gain && state->sum) {
        memcpy(state->node, node, n * sizeof *node);
        if (lay_out(state)) {
            sum_up(state);
            return state;
        }
    }
    state_free(state);
    return NULL;
}

void state_free(struct state *state) {
    if (!state) return;
    free(state->block);
    free(state->node);
    free(state->member);
    free(state->position);
    free(state->gain);
    free(state->sum);
    free(state);
}

/* Take over another placement with the same number of elements in every block. */
void state_set(struct state *state, const int *node) {
    int n = state->graph->n, next[state->blocks];
    memcpy(state->node, node, (size_t)n * sizeof *node);
    for (int b = 0; b < state->blocks; b++) next[b] = state->block[b].start;
    for (int i = 0; i < n; i++) {
        int low = 0, high = state->blocks - 1, key = order_key(state, i); /* blocks ascend by key */
        while (low < high) {
            int middle = (low + high) / 2;
            if (state->block[middle].node * MAX_LEVELS + state->block[middle].class < key)
                low = middle + 1;
            else
                high = middle;
        }
        state->position[i] = next[low]++;
        state->member[state->position[i]] = i;
    }
    sum_up(state);
}

double swap_cost(const struct state *state, int i, int j) {
    size_t n = (size_t)state->graph->n, a = (size_t)state->node[i], b = (size_t)state->node[j];
    const double *gain = state->gain, *cost = state->rules->cost;
    size_t k = (size_t)state->rules->k;
    double pair = 2 * cost[a * k + b] - cost[a * k + a] - cost[b * k + b];
    return gain[b * n + (size_t)i] - gain[a * n + (size_t)i] + gain[a * n + (size_t)j] - gain[b * n + (size_t)j] +
           pair * state->graph->comm[(size_t)i * n + (size_t)j];
}

double swap_imbalance(const struct state *state, int i, int j) {
    const struct rules *rules = state->rules;
    int a = state->node[i], b = state->node[j];
    double moved = state->graph->load[j] - state->graph->load[i];
    if (moved == 0) return 0;
    return node_imbalance(rules, a, state->sum[a] + moved) + node_imbalance(rules, b, state->sum[b] - moved) -
           node_imbalance(rules, a, state->sum[a]) - node_imbalance(rules, b, state->sum[b]);
}

void state_swap(struct state *state, int i, int j) {
    const struct graph *graph = state->graph;
    const struct rules *rules = state->rules;
    size_t n = (size_t)graph->n;
    int k = rules->k, a = state->node[i], b = state->node[j], p = state->position[i], q = state->position[j];
    state->cost += swap_cost(state, i, j);
    if (rules->balanced) {
        state->imbalance += swap_imbalance(state, i, j);
        state->sum[a] += graph->load[j] - graph->load[i];
        state->sum[b] += graph->load[i] - graph->load[j];
    }
    const double *row_i = graph->comm + (size_t)i * n, *row_j = graph->comm + (size_t)j * n;
    *rules->work += (rules->flat ? 2 : (uint64_t)k) * n / 4;
    for (int x = 0; x < k; x++) {
        double step = rules->cost[x * k + b] - rules->cost[x * k + a];
        if (step == 0) continue;
        add_difference(state->gain + (size_t)x * n, step, row_i, row_j, n);
    }
    state->node[i] = b;
    state->node[j] = a;
    state->member[p] = j;
    state->member[q] = i;
    state->position[i] = q;
    state->position[j] = p;
}
