/* Branch and bound: the best placement with a proof, for few threads.
 *
 * Threads are placed one after the other, those that talk most first. A partial placement is dropped when what it
 * costs already, plus the least that each thread still to come must pay towards the placed ones and towards its
 * weakest partners, is no less than the best known. Nodes that are alike and still empty count as one.
 */
#include "solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct branch {
    const struct graph *graph;
    const struct rules *rules;
    int *order, *node, *free, *best;
    double *gain;    /* gain[d][x * n + i] as in struct state, over the threads placed at depth d */
    double *sum;     /* load of each node */
    double *suffix;  /* suffix[d * (n + 1) ..]: least loads among the threads from depth d on, added up */
    double best_cost, best_imbalance;
    uint64_t steps;
};

/* The imbalance that loads alone force whatever is placed from here on: only overfull nodes are certain. */
static double forced_imbalance(const struct branch *branch, int depth) {
    const struct rules *rules = branch->rules;
    double forced = 0;
    const double *least = branch->suffix + (size_t)depth * (size_t)(branch->graph->n + 1);
    for (int x = 0; x < rules->k; x++) {
        double filled = branch->sum[x] + least[branch->free[x]];
        if (filled > rules->target[x]) forced = fmax(forced, node_imbalance(rules, x, filled));
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
    if (sizes[x] != sizes[y] || branch->free[x] != sizes[x] || branch->free[y] != sizes[y]) return false;
    if (rules->balanced && rules->target[x] != rules->target[y]) return false;
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
    for (int x = 0; rules->balanced && x < rules->k; x++) greatest = fmax(greatest, node_imbalance(rules, x, sum[x]));
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
    const double *gain = branch->gain + (size_t)depth * cells, *row = branch->graph->comm + (size_t)i * (size_t)n;
    for (int x = 0; x < k; x++) {
        if (!branch->free[x] || represented(branch, sizes, x)) continue;
        double *next = branch->gain + (size_t)(depth + 1) * cells;
        for (int y = 0; y < k; y++)
            for (int j = 0; j < n; j++) next[y * n + j] = gain[y * n + j] + branch->rules->cost[x * k + y] * row[j];
        branch->free[x]--;
        branch->sum[x] += branch->graph->load[i];
        branch->node[i] = x;
        bool done = place(branch, sizes, depth + 1, cost + gain[x * n + i]);
        branch->free[x]++;
        branch->sum[x] -= branch->graph->load[i];
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
        for (int j = 0; j < n; j++) sum[i] += 1e-6 * branch->graph->comm[(size_t)i * (size_t)n + (size_t)j];
    }
    for (int d = 0; d < n; d++) {
        int chosen = -1;
        for (int i = 0; i < n; i++)
            if (sum[i] >= 0 && (chosen < 0 || sum[i] > sum[chosen])) chosen = i;
        branch->order[d] = chosen;
        sum[chosen] = -1;
        for (int j = 0; j < n; j++)
            if (sum[j] >= 0) sum[j] += branch->graph->comm[(size_t)chosen * (size_t)n + (size_t)j];
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void set_suffix(struct branch *branch) {
    int n = branch->graph->n;
    for (int d = 0; d <= n; d++) {
        double *sums = branch->suffix + (size_t)d * (size_t)(n + 1);
        for (int e = d; e < n; e++) sums[e - d + 1] = branch->graph->load[branch->order[e]];
        qsort(sums + 1, (size_t)(n - d), sizeof *sums, by_value);
        sums[0] = 0;
        for (int count = 1; count <= n - d; count++) sums[count] += sums[count - 1];
    }
}

static bool allocate(struct branch *branch, size_t n, size_t k) {
    branch->order = malloc(n * sizeof(int));
    branch->node = malloc(n * sizeof(int));
    branch->free = malloc(k * sizeof(int));
    branch->best = malloc(n * sizeof(int));
    branch->gain = calloc((n + 1) * k * n + n, sizeof(double));
    branch->sum = calloc(k, sizeof(double));
    branch->suffix = calloc((n + 1) * (n + 1), sizeof(double));
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

/* The least deviation of any node's load beyond the tolerance, then the least cost. Arguments as for numaplan_solve; sizes: k, threads of each node; node: a
 * placement to start from, and the result. Returns 1 when proven, 0 when `steps` were not enough, -1 without memory. */
int numaplan_exact(int n, int k, const double *comm, const double *cost, const double *load, const double *target,
                   double tolerance, const int *sizes, uint64_t steps, int *node, double *outcome) {
    int result = -1, *class = calloc((size_t)n, sizeof *class);
    struct graph graph = {n, comm, load, class};
    uint64_t work = 0;
    struct rules rules = {k, false, target != NULL, cost, target ? target : load, tolerance, &work, 0};
    struct branch branch = {.graph = &graph, .rules = &rules, .steps = steps};
    struct state *start = class ? state_new(&graph, &rules, node) : NULL;
    if (start && allocate(&branch, (size_t)n, (size_t)k)) {
        branch.best_cost = start->cost;
        branch.best_imbalance = greatest_imbalance(&rules, start->sum);
        memcpy(branch.best, node, (size_t)n * sizeof *node);
        memcpy(branch.free, sizes, (size_t)k * sizeof *sizes);
        set_order(&branch);
        set_suffix(&branch);
        memset(branch.gain, 0, (size_t)k * (size_t)n * sizeof(double));
        result = place(&branch, sizes, 0, 0);
        memcpy(node, branch.best, (size_t)n * sizeof *node);
        outcome[0] = tolerance;
        outcome[1] = branch.best_cost;
    }
    state_free(start);
    release(&branch);
    free(class);
    return result;
}
