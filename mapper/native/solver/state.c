/* A placement with the sums that make the cost of a swap known at once. */
#include "solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rng_next(struct rng *rng) {
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15u); /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int rng_below(struct rng *rng, int bound) { return (int)(((rng_next(rng) >> 32) * (uint64_t)bound) >> 32); }

void rng_shuffle(struct rng *rng, int n, int *order) {
    for (int i = 0; i < n; i++) {
        int j = rng_below(rng, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

/* How far off its target a load is, relatively, beyond the slack of its kind. */
static double off_target(const struct rules *rules, int kind, int node, double load) {
    double target = rules->target[kind * rules->k + node];
    return target > 0 ? fabs(load - target) / target - (rules->slack ? rules->slack[kind] : 0) : 0;
}

/* Linear so that small excesses are not free, and quadratic so that of two evils the most even is the lesser. */
double load_imbalance(const struct rules *rules, int kind, int node, double load) {
    double excess = off_target(rules, kind, node, load) - rules->tolerance;
    return excess > 1e-12 ? excess + 8 * excess * excess : 0;
}

double node_imbalance(const struct rules *rules, const double *sum, int node) {
    double imbalance = 0;
    for (int l = 0; l < rules->loads; l++) imbalance += load_imbalance(rules, l, node, sum[l * rules->k + node]);
    return imbalance;
}

double deviation(const struct rules *rules, const double *sum) {
    double most = 0;
    for (int l = 0; l < rules->loads; l++)
        for (int x = 0; x < rules->k; x++) most = fmax(most, off_target(rules, l, x, sum[l * rules->k + x]));
    return most;
}

bool better(double imbalance_a, double cost_a, double imbalance_b, double cost_b) {
    if (fabs(imbalance_a - imbalance_b) > 1e-11) return imbalance_a < imbalance_b;
    return cost_a < cost_b - 1e-13 * fabs(cost_b);
}

static int order_key(const struct state *state, int i) { return state->node[i] * MAX_LEVELS + state->graph->class[i]; }

/* Sort the elements into blocks by counting. */
static bool lay_out(struct state *state) {
    int n = state->graph->n, keys = state->rules->k * MAX_LEVELS;
    int *start = calloc((size_t)keys + 1, sizeof *start);
    if (!start) return false;
    for (int i = 0; i < n; i++) start[order_key(state, i) + 1]++;
    state->blocks = 0;
    for (int key = 0; key < keys; key++) {
        if (start[key + 1])
            state->block[state->blocks++] =
                (struct block){key / MAX_LEVELS, key % MAX_LEVELS, start[key], start[key] + start[key + 1]};
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

static void sum_loads(struct state *state) {
    const struct graph *graph = state->graph;
    const struct rules *rules = state->rules;
    int loads = rules->loads, k = rules->k;
    for (int cell = 0; cell < loads * k; cell++) state->sum[cell] = rules->base ? rules->base[cell] : 0;
    for (int i = 0; i < graph->n; i++)
        for (int l = 0; l < loads; l++) state->sum[l * k + state->node[i]] += graph->load[i * loads + l];
    state->imbalance = 0;
    for (int x = 0; rules->balanced && x < k; x++) state->imbalance += node_imbalance(rules, state->sum, x);
}

/* What each element says to each node, priced; where distances are flat that is what it says to all others. */
static void sum_talk(struct state *state) {
    const struct graph *graph = state->graph;
    const struct rules *rules = state->rules;
    size_t n = (size_t)graph->n, k = (size_t)rules->k;
    memset(state->gain, 0, n * k * sizeof *state->gain);
    for (size_t j = 0; j < n; j++) {
        size_t node = (size_t)state->node[j];
        if (rules->flat) matrix_add_row(state->gain + node * n, 1, &graph->comm, (int)j);
        for (size_t x = 0; !rules->flat && x < k; x++)
            if (rules->cost[x * k + node] != 0)
                matrix_add_row(state->gain + x * n, rules->cost[x * k + node], &graph->comm, (int)j);
    }
    for (size_t i = 0; rules->flat && i < n; i++) {
        double all = 0, *gain = state->gain + i;
        for (size_t x = 0; x < k; x++) all += gain[x * n];
        for (size_t x = 0; x < k; x++) gain[x * n] = all - gain[x * n];
    }
}

static void sum_up(struct state *state) {
    const struct graph *graph = state->graph;
    size_t n = (size_t)graph->n, k = (size_t)state->rules->k;
    *state->rules->work += matrix_size(&graph->comm) * (state->rules->flat ? 1 : k) / (graph->comm.cells ? 4 : 1);
    sum_loads(state);
    sum_talk(state);
    state->cost = 0;
    for (size_t i = 0; i < n; i++) {
        size_t cell = (size_t)state->node[i] * n + i;
        state->cost += state->gain[cell] / 2 + (graph->extra ? graph->extra[cell] : 0);
    }
    for (size_t cell = 0; graph->extra && cell < n * k; cell++) state->gain[cell] += graph->extra[cell];
}

double placement_cost(const struct graph *graph, const struct rules *rules, const int *node) {
    size_t n = (size_t)graph->n, k = (size_t)rules->k;
    double twice = 0, more = 0;
    for (size_t i = 0; i < n; i++) {
        struct row row = matrix_row(&graph->comm, (int)i);
        const double *cost = rules->cost + (size_t)node[i] * k;
        for (int e = 0; e < row.count; e++) twice += row.weight[e] * cost[node[row_column(row, e)]];
        if (graph->extra) more += graph->extra[(size_t)node[i] * n + i];
    }
    *rules->work += matrix_size(&graph->comm) + n;
    return twice / 2 + more;
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
    state->sum = malloc((size_t)rules->loads * k * sizeof *state->sum);
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
    int n = state->graph->n, next[state->blocks > 0 ? state->blocks : 1];
    memcpy(state->node, node, (size_t)n * sizeof *node);
    for (int b = 0; b < state->blocks; b++) next[b] = state->block[b].start;
    for (int i = 0; i < n; i++) {
        int low = 0, high = state->blocks - 1, key = order_key(state, i); /* blocks ascend by key */
        while (low < high) {
            int middle = (low + high) / 2;
            if (state->block[middle].node * MAX_LEVELS + state->block[middle].class < key) low = middle + 1;
            else high = middle;
        }
        state->position[i] = next[low]++;
        state->member[state->position[i]] = i;
    }
    sum_up(state);
}

static double swap_cost(const struct state *state, int i, int j) {
    size_t n = (size_t)state->graph->n, a = (size_t)state->node[i], b = (size_t)state->node[j];
    const double *gain = state->gain, *cost = state->rules->cost;
    size_t k = (size_t)state->rules->k;
    double pair = 2 * cost[a * k + b] - cost[a * k + a] - cost[b * k + b];
    return gain[b * n + (size_t)i] - gain[a * n + (size_t)i] + gain[a * n + (size_t)j] - gain[b * n + (size_t)j] +
           pair * matrix_entry(&state->graph->comm, i, j);
}

double state_swap_imbalance(const struct state *state, int i, int j) {
    const struct rules *rules = state->rules;
    int a = state->node[i], b = state->node[j], k = rules->k, loads = rules->loads;
    double change = 0;
    for (int l = 0; l < loads; l++) {
        double moved = state->graph->load[j * loads + l] - state->graph->load[i * loads + l];
        const double *sum = state->sum + l * k;
        if (moved != 0)
            change += load_imbalance(rules, l, a, sum[a] + moved) + load_imbalance(rules, l, b, sum[b] - moved) -
                      load_imbalance(rules, l, a, sum[a]) - load_imbalance(rules, l, b, sum[b]);
    }
    return change;
}

void state_swap(struct state *state, int i, int j) {
    const struct graph *graph = state->graph;
    const struct rules *rules = state->rules;
    size_t n = (size_t)graph->n;
    int k = rules->k, a = state->node[i], b = state->node[j], p = state->position[i], q = state->position[j];
    state->cost += swap_cost(state, i, j);
    if (rules->balanced) state->imbalance += state_swap_imbalance(state, i, j);
    for (int l = 0; rules->balanced && l < rules->loads; l++) {
        double moved = graph->load[j * rules->loads + l] - graph->load[i * rules->loads + l];
        state->sum[l * k + a] += moved;
        state->sum[l * k + b] -= moved;
    }
    uint64_t seen =
        graph->comm.cells ? n / 4 : (uint64_t)(matrix_row(&graph->comm, i).count + matrix_row(&graph->comm, j).count);
    *rules->work += (rules->flat ? 2 : (uint64_t)k) * seen;
    for (int x = 0; x < k; x++) {
        double step = rules->cost[x * k + b] - rules->cost[x * k + a];
        if (step != 0) matrix_add_difference(state->gain + (size_t)x * n, step, &graph->comm, i, j);
    }
    state->node[i] = b;
    state->node[j] = a;
    state->member[p] = j;
    state->member[q] = i;
    state->position[i] = q;
    state->position[j] = p;
}
