/* A fresh placement by recursive multilevel bisection: nodes in halves, halves in halves, exact at the end. */
#include "bisect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COARSEST = 28, TRIES = 6, PASSES = 4 };

static void cut_graph_free(struct cut_graph *graph) {
    free(graph->comm);
    free(graph->weight);
}

static bool cut_graph_new(struct cut_graph *graph, int n, bool wide, uint64_t *work) {
    *work += 2 * (uint64_t)n * (uint64_t)n;
    graph->n = n;
    graph->wide = wide;
    graph->work = work;
    graph->comm = calloc((size_t)n * (size_t)n, sizeof *graph->comm);
    graph->weight = calloc((size_t)n, sizeof *graph->weight);
    if (graph->comm && graph->weight) return true;
    cut_graph_free(graph);
    return false;
}

/* Free vertex that `row` talks to most for its weight, light enough to join i; friend: the heaviest of all. */
static int strongest(const struct cut_graph *graph, const int *map, const double *row, int i, int limit, int *friend) {
    int best = -1;
    double most = 0, loudest = 0;
    for (int j = 0; j < graph->n; j++) {
        if (row[j] > loudest) loudest = row[j], *friend = j;
        if (map[j] >= 0 || j == i || graph->weight[i] + graph->weight[j] > limit) continue;
        double rating = row[j] / graph->weight[j];
        if (rating > most) most = rating, best = j;
    }
    return best;
}

/* Pair vertices: map[i] is the number of i's pair. Those without a free partner join one of the same friend. */
static int match(const struct cut_graph *graph, struct rng *rng, int limit, int *map, int *order) {
    int n = graph->n, count = 0;
    for (int i = 0; i < n; i++) {
        int j = rng_below(rng, i + 1);
        order[i] = order[j];
        order[j] = i;
        map[i] = -1;
    }
    for (int step = 0; step < n; step++) {
        int i = order[step], friend = -1, unused = -1;
        if (map[i] >= 0) continue;
        int j = strongest(graph, map, graph->comm + (size_t)i * (size_t)n, i, limit, &friend);
        if (j < 0 && friend >= 0) j = strongest(graph, map, graph->comm + (size_t)friend * (size_t)n, i, limit, &unused);
        if (j >= 0) map[j] = count;
        map[i] = count++;
    }
    return count;
}

static void contract(const struct cut_graph *graph, const int *map, struct cut_graph *coarse) {
    size_t n = (size_t)graph->n, m = (size_t)coarse->n;
    for (size_t i = 0; i < n; i++) {
        coarse->weight[map[i]] += graph->weight[i];
        add_bundled(coarse->comm + (size_t)map[i] * m, map, graph->comm + i * n, n);
    }
    for (size_t i = 0; i < m; i++) coarse->comm[i * m + i] = 0;
}

/* Side 0 grows from a random vertex, always by the one that talks most to it, until it weighs enough. */
static void grow_side(const struct cut_graph *graph, struct rng *rng, int wanted, double *sum, signed char *side) {
    int n = graph->n, weight = 0, next = rng_below(rng, n);
    memset(side, 1, (size_t)n);
    memset(sum, 0, (size_t)n * sizeof *sum);
    while (next >= 0 && 2 * (wanted - weight) > graph->weight[next]) {
        const double *row = graph->comm + (size_t)next * (size_t)n;
        side[next] = 0;
        weight += graph->weight[next];
        for (int j = 0; j < n; j++) sum[j] += row[j];
        next = -1;
        for (int j = 0, start = rng_below(rng, n); j < n; j++) {
            int i = start + j < n ? start + j : start + j - n;
            if (side[i] && (next < 0 || sum[i] > sum[next])) next = i;
        }
    }
}

static double first_cut(const struct cut_graph *graph, struct rng *rng, int wanted, int slack, signed char *side) {
    size_t n = (size_t)graph->n;
    signed char *trial = malloc(n);
    double *sum = malloc(n * sizeof *sum), least = -1;
    for (int try = 0; trial && sum && try < TRIES; try++) {
        grow_side(graph, rng, wanted, sum, trial);
        double cut = refine_cut(graph, wanted, slack, PASSES, trial);
        if (cut < 0) break;
        if (least < 0 || cut < least) least = cut, memcpy(side, trial, n);
    }
    free(trial);
    free(sum);
    return least;
}

static double cut_multilevel(const struct cut_graph *graph, struct rng *rng, int wanted, int limit, bool finest,
                             signed char *side) {
    int heaviest = 1, slack = 0;
    for (int i = 0; i < graph->n; i++) heaviest = graph->weight[i] > heaviest ? graph->weight[i] : heaviest;
    if (!finest) slack = heaviest;
    if (graph->n <= COARSEST) return first_cut(graph, rng, wanted, slack, side);
    size_t n = (size_t)graph->n;
    int *map = malloc(n * sizeof *map), *order = malloc(n * sizeof *order), count = 0;
    struct cut_graph coarse = {0};
    double cut = -1;
    if (map && order) count = match(graph, rng, limit, map, order);
    if (count && 20 * count > 19 * graph->n) {
        cut = first_cut(graph, rng, wanted, slack, side); /* nothing left to pair */
    } else if (count && cut_graph_new(&coarse, count, graph->wide, graph->work)) {
        contract(graph, map, &coarse);
        signed char *coarse_side = malloc((size_t)count);
        if (coarse_side) cut = cut_multilevel(&coarse, rng, wanted, limit, false, coarse_side);
        for (size_t i = 0; cut >= 0 && i < n; i++) side[i] = coarse_side[map[i]];
        if (cut >= 0) cut = refine_cut(graph, wanted, slack, PASSES, side);
        free(coarse_side);
        cut_graph_free(&coarse);
    }
    free(map);
    free(order);
    return cut;
}

struct splitting {
    const struct graph *graph;
    struct rng *rng;
    const int *sizes, *nodes; /* threads of each node; the nodes in an order that keeps near ones together */
    int *result;
    bool wide;
    uint64_t *work;
};

static bool split(const struct splitting *task, int *members, int count, int low, int high) {
    if (high - low == 1) {
        for (int m = 0; m < count; m++) task->result[members[m]] = task->nodes[low];
        return true;
    }
    int middle = (low + high) / 2, wanted = 0, left = 0;
    for (int x = low; x < middle; x++) wanted += task->sizes[task->nodes[x]];
    struct cut_graph part;
    if (!cut_graph_new(&part, count ? count : 1, task->wide, task->work)) return false;
    size_t n = (size_t)task->graph->n, m = (size_t)count;
    for (size_t a = 0; a < m; a++) {
        const double *row = task->graph->comm + (size_t)members[a] * n;
        part.weight[a] = 1;
        for (size_t b = 0; b < m; b++) part.comm[a * m + b] = row[members[b]];
    }
    signed char *side = calloc(m + 1, 1);
    int *sorted = malloc((m + 1) * sizeof *sorted), limit = 1 + count / 12;
    bool done = side && sorted;
    if (done && wanted > 0 && wanted < count) done = cut_multilevel(&part, task->rng, wanted, limit, true, side) >= 0;
    if (done && wanted == 0) memset(side, 1, m);
    for (int pass = 0, next = 0; done && pass < 2; pass++)
        for (int a = 0; a < count; a++)
            if (side[a] == pass) {
                sorted[next++] = members[a];
                left += pass == 0;
            }
    if (done) memcpy(members, sorted, m * sizeof *members);
    cut_graph_free(&part);
    free(side);
    free(sorted);
    return done && split(task, members, left, low, middle) && split(task, members + left, count - left, middle, high);
}

/* Chain the nodes, each followed by the nearest one left, so that halves of the chain lie together. */
static void chain_nodes(const struct rules *rules, struct rng *rng, int *nodes) {
    int k = rules->k;
    for (int x = 0; x < k; x++) nodes[x] = x;
    for (int x = 0; x < k; x++) {
        int chosen = x ? x : rng_below(rng, k);
        for (int y = x; x && y < k; y++)
            if (rules->cost[nodes[x - 1] * k + nodes[y]] < rules->cost[nodes[x - 1] * k + nodes[chosen]]) chosen = y;
        int held = nodes[x];
        nodes[x] = nodes[chosen];
        nodes[chosen] = held;
    }
}

bool bisect_placement(const struct graph *graph, const struct rules *rules, struct rng *rng, int most, bool wide,
                      int *node) {
    size_t n = (size_t)graph->n, k = (size_t)rules->k;
    int *sizes = calloc(k, sizeof *sizes), *nodes = malloc(k * sizeof *nodes), *members = malloc(n * sizeof *members);
    bool *chosen = calloc(k, sizeof *chosen), done = sizes && nodes && members && chosen;
    if (done) {
        int count = 0, parts = most < rules->k ? most : rules->k;
        chain_nodes(rules, rng, nodes);
        if (parts < rules->k) /* any nodes, in the order of the chain */
            for (int x = 0, left = parts; x < rules->k; x++)
                if (rng_below(rng, rules->k - x) < left) nodes[parts - left--] = nodes[x];
        for (int x = 0; x < parts; x++) chosen[nodes[x]] = true;
        for (size_t i = 0; i < n; i++) {
            sizes[node[i]]++;
            if (chosen[node[i]]) members[count++] = (int)i;
        }
        struct splitting task = {graph, rng, sizes, nodes, node, wide, rules->work};
        done = split(&task, members, count, 0, parts);
    }
    free(sizes);
    free(nodes);
    free(members);
    free(chosen);
    return done;
}
