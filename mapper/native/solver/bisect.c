/* A new placement by recursive multilevel bisection: nodes in halves, halves in halves, exact at the end. */
#include "bisect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COARSEST = 28, FIRST_CUTS = 6, PASSES = 4 };

/* Side 0 grows from a random vertex, always by the one that talks most to it, until it weighs enough. */
static void grow_side(const struct bundles *graph, struct rng *rng, int wanted, double *sum, signed char *side) {
    int n = graph->comm.n, weight = 0, next = rng_below(rng, n);
    memset(side, 1, (size_t)n);
    *graph->work += (uint64_t)n * (uint64_t)n;
    for (int i = 0; i < n; i++) sum[i] = graph->extra ? graph->extra[i] : 0;
    while (next >= 0 && 2 * (wanted - weight) > graph->weight[next]) {
        side[next] = 0;
        weight += graph->weight[next];
        matrix_add_row(sum, 1, &graph->comm, next);
        next = -1;
        for (int j = 0, start = rng_below(rng, n); j < n; j++) {
            int i = start + j < n ? start + j : start + j - n;
            if (side[i] && (next < 0 || sum[i] > sum[next])) next = i;
        }
    }
}

static double first_cut(const struct bundles *graph, bool wide, struct rng *rng, int wanted, int slack,
                        signed char *side) {
    size_t n = (size_t)graph->comm.n;
    signed char *trial = malloc(n);
    double *sum = malloc(n * sizeof *sum), least = -1;
    for (int try = 0; trial && sum && try < FIRST_CUTS; try++) {
        grow_side(graph, rng, wanted, sum, trial);
        double cut = cut_refine(graph, wide, wanted, slack, PASSES, trial);
        if (cut < 0) break;
        if (least < 0 || cut < least) least = cut, memcpy(side, trial, n);
    }
    free(trial);
    free(sum);
    return least;
}

static double cut_multilevel(const struct bundles *graph, bool wide, struct rng *rng, int wanted, int limit,
                             bool finest, signed char *side) {
    int heaviest = 1, slack = 0;
    for (int i = 0; i < graph->comm.n; i++) heaviest = graph->weight[i] > heaviest ? graph->weight[i] : heaviest;
    if (!finest) slack = heaviest;
    if (graph->comm.n <= COARSEST) return first_cut(graph, wide, rng, wanted, slack, side);
    size_t n = (size_t)graph->comm.n;
    int *map = malloc(n * sizeof *map), *order = malloc(n * sizeof *order), count = 0;
    struct bundles coarse = {0};
    double cut = -1;
    if (map && order) count = bundles_pair(graph, rng, limit, NULL, NULL, map, order);
    if (count && 20 * count > 19 * graph->comm.n) {
        cut = first_cut(graph, wide, rng, wanted, slack, side); /* nothing left to pair */
    } else if (count) {
        signed char *coarse_side = malloc((size_t)count);
        if (coarse_side && bundles_join(graph, map, count, &coarse))
            cut = cut_multilevel(&coarse, wide, rng, wanted, limit, false, coarse_side);
        for (size_t i = 0; cut >= 0 && i < n; i++) side[i] = coarse_side[map[i]];
        if (cut >= 0) cut = cut_refine(graph, wide, wanted, slack, PASSES, side);
        free(coarse_side);
        bundles_free(&coarse);
    }
    free(map);
    free(order);
    return cut;
}

struct splitting {
    const struct graph *graph;
    const struct rules *rules;
    struct rng *rng;
    const int *sizes, *nodes; /* threads of each node; the nodes in an order that keeps near ones together */
    int *result;
    const struct bisecting *how;
    uint64_t *work;
};

/* Move the vertices that talk least across until side 0 holds exactly what it should: the cut may end beside it.
 * Returns whether any moved. */
static bool make_exact(const struct bundles *graph, int wanted, signed char *side) {
    int n = graph->comm.n, held = 0;
    for (int i = 0; i < n; i++) held += side[i] == 0;
    bool moves = held != wanted;
    while (held != wanted) {
        signed char from = held > wanted ? 0 : 1;
        int chosen = -1;
        double least = INFINITY;
        for (int i = 0; i < n; i++) {
            if (side[i] != from) continue;
            struct row row = matrix_row(&graph->comm, i);
            double loss = graph->extra ? (from ? -graph->extra[i] : graph->extra[i]) : 0;
            for (int e = 0; e < row.count; e++)
                loss += side[row_column(row, e)] == from ? row.weight[e] : -row.weight[e];
            if (loss < least || chosen < 0) least = loss, chosen = i;
        }
        side[chosen] = (signed char)(1 - from);
        held += from ? 1 : -1;
    }
    return moves;
}

/* What a unit of communication costs more between the two sides than within them, in the mean. */
static double mean_price(const struct splitting *splitting, int low, int middle, int high) {
    const double *cost = splitting->rules->cost;
    int k = splitting->rules->k;
    double sum = 0;
    for (int x = low; x < middle; x++)
        for (int y = middle; y < high; y++) {
            int a = splitting->nodes[x], b = splitting->nodes[y];
            sum += cost[a * k + b] - (cost[a * k + a] + cost[b * k + b]) / 2;
        }
    return sum / ((middle - low) * (high - middle));
}

/* The members as a graph to cut between the nodes low .. middle-1 and middle .. high-1 of the chain. */
static bool part_new(const struct splitting *splitting, const int *members, int count, int low, int middle, int high,
                     struct bundles *part) {
    const double *extra = splitting->graph->extra;
    if (!bundles_new(part, count, extra ? 1 : 0, splitting->work)) return false;
    for (int a = 0; a < count; a++) part->weight[a] = 1;
    double apart = extra ? mean_price(splitting, low, middle, high) : 1;
    for (int x = low; extra && apart > 0 && x < high; x++) {
        const double *cost = extra + (size_t)splitting->nodes[x] * (size_t)splitting->graph->n;
        double share = (x < middle ? -1.0 / (middle - low) : 1.0 / (high - middle)) / apart;
        for (int a = 0; a < count; a++) part->extra[a] += share * cost[members[a]];
    }
    if (!matrix_part(&splitting->graph->comm, members, count, &part->comm)) return false;
    *splitting->work += matrix_size(&part->comm);
    return true;
}

/* The least of several cuts, narrow and wide in turn. */
static bool best_cut(const struct bundles *part, const struct bisecting *how, struct rng *rng, int wanted, int limit,
                     signed char *side) {
    size_t n = (size_t)part->comm.n;
    double least = INFINITY;
    signed char *trial = malloc(n);
    for (int try = 0; trial && try < how->tries; try++) {
        const bool wide = how->wide != (try % 2 == 1);
        double cut = cut_multilevel(part, wide, rng, wanted, limit, true, trial);
        if (cut >= 0 && make_exact(part, wanted, trial)) cut = cut_refine(part, wide, wanted, 0, PASSES, trial);
        if (cut < 0) break;
        if (cut < least) least = cut, memcpy(side, trial, n);
    }
    free(trial);
    return isfinite(least);
}

static bool cut_exactly(const struct splitting *splitting, const struct bundles *part, int wanted, signed char *side) {
    return splitting->how->forests != NEVER &&
           cut_forest(part, splitting->rng, splitting->how->forests == SHAKEN, wanted, side);
}

/* Cut the members in two and bring those of the first side to the front; left: how many these are. */
static bool part_in_two(const struct splitting *splitting, int *members, int count, int low, int middle, int high,
                        int *left) {
    int wanted = 0, limit = 1 + count / 12, next = 0;
    for (int x = low; x < middle; x++) wanted += splitting->sizes[splitting->nodes[x]];
    *left = wanted;
    if (wanted == 0 || wanted == count) return true;
    struct bundles part = {0};
    signed char *side = calloc((size_t)count, 1);
    int *sorted = malloc((size_t)count * sizeof *sorted);
    bool done = side && sorted && part_new(splitting, members, count, low, middle, high, &part) &&
                (cut_exactly(splitting, &part, wanted, side) ||
                 best_cut(&part, splitting->how, splitting->rng, wanted, limit, side));
    if (done) {
        for (int pass = 0; pass < 2; pass++)
            for (int a = 0; a < count; a++)
                if (side[a] == pass) sorted[next++] = members[a];
        memcpy(members, sorted, (size_t)count * sizeof *members);
    }
    bundles_free(&part);
    free(side);
    free(sorted);
    return done;
}

static bool split(const struct splitting *splitting, int *members, int count, int low, int high) {
    if (high - low == 1) {
        for (int m = 0; m < count; m++) splitting->result[members[m]] = splitting->nodes[low];
        return true;
    }
    int middle = (low + high) / 2, left = 0;
    return part_in_two(splitting, members, count, low, middle, high, &left) &&
           split(splitting, members, left, low, middle) && split(splitting, members + left, count - left, middle, high);
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

bool bisect_placement(const struct graph *graph, const struct rules *rules, struct rng *rng,
                      const struct bisecting *how, int *node) {
    size_t n = (size_t)graph->n, k = (size_t)rules->k;
    int *sizes = calloc(k, sizeof *sizes), *nodes = malloc(k * sizeof *nodes), *members = malloc(n * sizeof *members);
    bool *chosen = calloc(k, sizeof *chosen), done = sizes && nodes && members && chosen;
    if (done) {
        int count = 0, parts = how->nodes < rules->k ? how->nodes : rules->k;
        chain_nodes(rules, rng, nodes);
        if (parts < rules->k) /* any nodes, in the order of the chain */
            for (int x = 0, left = parts; x < rules->k; x++)
                if (rng_below(rng, rules->k - x) < left) nodes[parts - left--] = nodes[x];
        for (int x = 0; x < parts; x++) chosen[nodes[x]] = true;
        for (size_t i = 0; i < n; i++) {
            sizes[node[i]]++;
            if (chosen[node[i]]) members[count++] = (int)i;
        }
        struct splitting splitting = {graph, rules, rng, sizes, nodes, node, how, rules->work};
        done = split(&splitting, members, count, 0, parts);
    }
    free(sizes);
    free(nodes);
    free(members);
    free(chosen);
    return done;
}
