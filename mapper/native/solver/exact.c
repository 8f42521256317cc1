/* Branch and bound: the best placement with a proof, for few threads.
 *
 * Threads are placed one after the other, those that communicate most first. A partial placement is dropped when what
 * it costs already, plus the least that each thread still to come must pay towards the placed ones and towards its
 * weakest partners, is no less than the best known. Nodes that are alike and still empty count as one. */
#include "problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct branch {
    const struct graph *graph;
    const struct rules *rules;
    int *order, *node, *free, *best;
    double *gain;    /* gain[d][x * n + i] as in struct state, over the threads placed at depth d */
    double *sum;     /* as in struct state */
    double *suffix;  /* of each kind, suffix[d * (n + 1) ..]: least loads of the threads from depth d on, added up */
    double best_cost, best_imbalance;
    uint64_t steps;
};

/* The imbalance that loads alone force whatever is placed from here on: only overfull nodes are certain. */
static double forced_imbalance(const struct branch *branch, int depth) {
    const struct rules *rules = branch->rules;
    double forced = 0;
    size_t n = (size_t)branch->graph->n;
    for (int l = 0; l < rules->loads; l++) {
        const double *least = branch->suffix + ((size_t)l * (n + 1) + (size_t)depth) * (n + 1);
        for (int x = 0; x < rules->k; x++) {
            double filled = branch->sum[l * rules->k + x] + least[branch->free[x]];
            if (filled > rules->target[l * rules->k + x]) forced = fmax(forced, load_imbalance(rules, l, x, filled));
        }
    }
    return forced;
}

/* What the threads still to come pay at least: the cheapest node each, towards the placed ones. */
static double remaining_floor(const struct branch *branch, int depth) {
    size_t n = (size_t)branch->graph->n;
    const double *gain = branch->gain + (size_t)depth * (size_t)branch->rules->k * n;
    double floor = 0;
    for (int d = depth; d < branch->graph->n; d++) {
        double least = INFINITY;
        for (int x = 0; x < branch->rules->k; x++)
            if (branch->free[x]) least = fmin(least, gain[(size_t)x * n + (size_t)branch->order[d]]);
        floor += least;
    }
    return floor;
}

/* Whether node y stands for x: both empty and alike in everything that matters, y comes first. */
static bool alike(const struct branch *branch, const int *sizes, int x, int y) {
    const struct rules *rules = branch->rules;
    int k = rules->k;
    if (branch->graph->extra || sizes[x] != sizes[y] || branch->free[x] != sizes[x] || branch->free[y] != sizes[y])
        return false;
    for (int l = 0; rules->balanced && l < rules->loads; l++) {
        if (rules->target[l * k + x] != rules->target[l * k + y]) return false;
        if (rules->base && rules->base[l * k + x] != rules->base[l * k + y]) return false;
    }
    for (int z = 0; z < k; z++)
        if (z != x && z != y && rules->cost[x * k + z] != rules->cost[y * k + z]) return false;
    return rules->cost[x * k + x] == rules->cost[y * k + y];
}

static bool represented(const struct branch *branch, const int *sizes, int x) {
    for (int y = 0; y < x; y++)
        if (alike(branch, sizes, x, y)) return true;
    return false;
}

/* That of the node that is furthest off. */
static double greatest_imbalance(const struct rules *rules, const double *sum) {
    double greatest = 0;
    for (int l = 0; rules->balanced && l < rules->loads; l++)
        for (int x = 0; x < rules->k; x++)
            greatest = fmax(greatest, load_imbalance(rules, l, x, sum[l * rules->k + x]));
    return greatest;
}

static void take(struct branch *branch, double cost) {
    double imbalance = greatest_imbalance(branch->rules, branch->sum);
    if (!better(imbalance, cost, branch->best_imbalance, branch->best_cost)) return;
    branch->best_imbalance = imbalance;
    branch->best_cost = cost;
    memcpy(branch->best, branch->node, (size_t)branch->graph->n * sizeof *branch->best);
}

static bool hopeless(const struct branch *branch, int depth, double cost) {
    double imbalance = branch->rules->balanced ? forced_imbalance(branch, depth) : 0;
    if (imbalance > branch->best_imbalance + 1e-11) return true;
    if (imbalance < branch->best_imbalance - 1e-11) return false;
    return cost + remaining_floor(branch, depth) >= branch->best_cost * (1 - 1e-12);
}

static void add_load(struct branch *branch, int i, int x, double sign) {
    int loads = branch->rules->loads;
    for (int l = 0; l < loads; l++) branch->sum[l * branch->rules->k + x] += sign * branch->graph->load[i * loads + l];
}

/* Place the thread at this depth everywhere it may go; false when the steps are used up. */
static bool place(struct branch *branch, const int *sizes, int depth, double cost) {
    int n = branch->graph->n, k = branch->rules->k, i;
    if (depth == n) {
        take(branch, cost);
        return true;
    }
    if (!branch->steps--) return branch->steps = 0, false;
    if (hopeless(branch, depth, cost)) return true;
    i = branch->order[depth];
    size_t cells = (size_t)k * (size_t)n;
    const double *gain = branch->gain + (size_t)depth * cells, *row = branch->graph->comm.cells + (size_t)i * (size_t)n;
    for (int x = 0; x < k; x++) {
        if (!branch->free[x] || represented(branch, sizes, x)) continue;
        double *next = branch->gain + (size_t)(depth + 1) * cells;
        for (int y = 0; y < k; y++)
            for (int j = 0; j < n; j++) next[y * n + j] = gain[y * n + j] + branch->rules->cost[x * k + y] * row[j];
        branch->free[x]--;
        add_load(branch, i, x, 1);
        branch->node[i] = x;
        bool done = place(branch, sizes, depth + 1, cost + gain[x * n + i]);
        branch->free[x]++;
        add_load(branch, i, x, -1);
        if (!done) return false;
    }
    return true;
}

/* Greatest talkers towards those already in the order come first, so that bounds bite early. */
static void set_order(struct branch *branch) {
    int n = branch->graph->n;
    double *sum = branch->gain; /* scratch */
    for (int i = 0; i < n; i++) {
        sum[i] = 0;
        for (int j = 0; j < n; j++) sum[i] += 1e-6 * branch->graph->comm.cells[(size_t)i * (size_t)n + (size_t)j];
    }
    for (int d = 0; d < n; d++) {
        int chosen = -1;
        for (int i = 0; i < n; i++)
            if (sum[i] >= 0 && (chosen < 0 || sum[i] > sum[chosen])) chosen = i;
        branch->order[d] = chosen;
        sum[chosen] = -1;
        for (int j = 0; j < n; j++)
            if (sum[j] >= 0) sum[j] += branch->graph->comm.cells[(size_t)chosen * (size_t)n + (size_t)j];
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void set_suffix(struct branch *branch) {
    int n = branch->graph->n, loads = branch->rules->loads;
    for (int row = 0; row < loads * (n + 1); row++) {
        int d = row % (n + 1), l = row / (n + 1);
        double *sums = branch->suffix + (size_t)row * (size_t)(n + 1);
        for (int e = d; e < n; e++) sums[e - d + 1] = branch->graph->load[branch->order[e] * loads + l];
        qsort(sums + 1, (size_t)(n - d), sizeof *sums, by_value);
        sums[0] = 0;
        for (int count = 1; count <= n - d; count++) sums[count] += sums[count - 1];
    }
}

static bool allocate(struct branch *branch, size_t n, size_t k, size_t loads) {
    branch->order = malloc(n * sizeof(int));
    branch->node = malloc(n * sizeof(int));
    branch->free = malloc(k * sizeof(int));
    branch->best = malloc(n * sizeof(int));
    branch->gain = calloc((n + 1) * k * n + n, sizeof(double));
    branch->sum = calloc(loads * k, sizeof(double));
    branch->suffix = calloc(loads * (n + 1) * (n + 1), sizeof(double));
    return branch->order && branch->node && branch->free && branch->best && branch->gain && branch->sum &&
           branch->suffix;
}

static void release(struct branch *branch) {
    free(branch->order);
    free(branch->node);
    free(branch->free);
    free(branch->best);
    free(branch->gain);
    free(branch->sum);
    free(branch->suffix);
}

int numaplan_exact(const struct problem *problem, const int *sizes, uint64_t steps, int *node) {
    size_t n = (size_t)problem->n, k = (size_t)problem->k, loads = (size_t)problem->loads;
    int result = -1, *class = calloc(n, sizeof *class);
    uint64_t work = 0;
    struct graph graph = problem_graph(problem, class);
    struct rules rules = problem_rules(problem, &work);
    rules.flat = false; /* the sums are wanted as they are */
    struct branch branch = {.graph = &graph, .rules = &rules, .steps = steps};
    struct state *start = class ? state_new(&graph, &rules, node) : NULL;
    if (start && allocate(&branch, n, k, loads)) {
        branch.best_cost = start->cost;
        branch.best_imbalance = greatest_imbalance(&rules, start->sum);
        memcpy(branch.best, node, n * sizeof *node);
        memcpy(branch.free, sizes, k * sizeof *sizes);
        set_order(&branch);
        set_suffix(&branch);
        memset(branch.gain, 0, k * n * sizeof(double));
        if (problem->extra) memcpy(branch.gain, problem->extra, k * n * sizeof(double));
        if (problem->base) memcpy(branch.sum, problem->base, loads * k * sizeof(double));
        result = place(&branch, sizes, 0, 0);
        memcpy(node, branch.best, n * sizeof *node);
    }
    state_free(start);
    release(&branch);
    free(class);
    return result;
}
