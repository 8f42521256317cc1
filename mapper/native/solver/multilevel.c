/* Coarsen by pairing elements that communicate most, place the bundles, and refine while the bundles are taken apart.
 *
 * Only elements of the highest class pair, and a node with s of them offers s/2 slots for pairs and s mod 2 for a
 * single one, so that every level has exact seats.
 */
#include "solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK = 96 };

struct coarsening {
    int top, pairs;  /* the class that pairs; how many pairs there are */
    int *quota;      /* pairs that each node can hold */
    int *mate, *map; /* partner of each element (itself: none), its bundle */
};

static int top_class(const struct graph *graph) {
    int top = 0;
    for (int i = 0; i < graph->n; i++)
        if (graph->class[i] > top) top = graph->class[i];
    return top;
}

static void count_pairs(const struct graph *graph, int k, const int *node, struct coarsening *plan) {
    plan->top = top_class(graph);
    plan->pairs = 0;
    memset(plan->quota, 0, (size_t)k * sizeof *plan->quota);
    for (int i = 0; i < graph->n; i++) plan->quota[node[i]] += graph->class[i] == plan->top;
    for (int x = 0; x < k; x++) plan->pairs += plan->quota[x] /= 2;
}

static bool may_pair(const struct graph *graph, const struct coarsening *plan, int i, int j, bool fresh,
                     const int *node) {
    return plan->mate[j] < 0 && graph->class[j] == plan->top && j != i && (fresh || node[j] == node[i]);
}

/* The free element that may pair with i and talks most to `to`, measured by what it says in all. */
static int heaviest_partner(const struct graph *graph, const struct coarsening *plan, const double *talk, int i, int to,
                            bool fresh, const int *node) {
    int partner = -1, shift = 0;
    struct row row = matrix_row(&graph->comm, to);
    double heaviest = 0;
    if (to != i && row.to && row.count > LOOK) { /* a busy friend has too many others to go through each time */
        shift = (int)((uint64_t)i * 2654435761u % (uint64_t)(row.count - LOOK));
        row = (struct row){LOOK, row.to + shift, row.weight + shift};
    }
    for (int e = 0; e < row.count; e++) {
        int j = row_column(row, e);
        if (!(row.weight[e] * talk[j] > heaviest) || !may_pair(graph, plan, i, j, fresh, node)) continue;
        partner = j;
        heaviest = row.weight[e] * talk[j];
    }
    return partner;
}

/* A partner for i: one that talks to it; or to the one it talks to most, or to that one's partner; or anyone. */
static int find_partner(const struct graph *graph, const struct coarsening *plan, const double *talk, struct rng *rng,
                        int i, bool fresh, const int *node) {
    int n = graph->n, j = heaviest_partner(graph, plan, talk, i, i, fresh, node), friend = -1;
    if (j >= 0) return j;
    struct row row = matrix_row(&graph->comm, i);
    double loudest = 0;
    for (int e = 0; e < row.count; e++)
        if (row.weight[e] > loudest) loudest = row.weight[e], friend = row_column(row, e);
    if (friend >= 0) j = heaviest_partner(graph, plan, talk, i, friend, fresh, node);
    if (j < 0 && friend >= 0 && plan->mate[friend] >= 0)
        j = heaviest_partner(graph, plan, talk, i, plan->mate[friend], fresh, node);
    if (j >= 0) return j;
    for (int step = 0, l = rng_below(rng, n); step < n; step++, l = l + 1 == n ? 0 : l + 1)
        if (may_pair(graph, plan, i, l, fresh, node)) return l;
    return -1;
}

/* Those with fewest partners to choose from come first, in random order among equals. talk: 1 / all it says. */
static void choosing_order(const struct graph *graph, struct rng *rng, double *talk, int *order, int *rank) {
    int n = graph->n, count[66] = {0};
    for (int i = 0; i < n; i++) {
        struct row row = matrix_row(&graph->comm, i);
        double sum = 0, most = 0;
        for (int e = 0; e < row.count; e++) {
            sum += row.weight[e];
            most = fmax(most, row.weight[e]);
        }
        double partners = most > 0 ? sum / most : 64; /* counted by weight */
        rank[i] = partners < 64 ? (int)partners : 64;
        talk[i] = sum > 0 ? 1 / sum : 1;
        count[rank[i] + 1]++;
    }
    for (int r = 1; r < 66; r++) count[r] += count[r - 1];
    int shift = rng_below(rng, n);
    for (int step = 0; step < n; step++) {
        int i = step + shift < n ? step + shift : step + shift - n;
        int first = count[rank[i]]++;
        order[first] = i;
    }
    for (int from = 0; from < n;) { /* shuffle each run of equals */
        int to = from;
        while (to < n && rank[order[to]] == rank[order[from]]) to++;
        for (int p = from; p < to; p++) {
            int q = p + rng_below(rng, to - p), held = order[p];
            order[p] = order[q];
            order[q] = held;
        }
        from = to;
    }
}

static bool pair_up(const struct graph *graph, struct coarsening *plan, struct rng *rng, bool fresh, const int *node) {
    int n = graph->n, left = plan->pairs, *order = plan->map; /* the map is not needed yet */
    double *talk = malloc((size_t)n * sizeof *talk);
    if (!talk) return false;
    choosing_order(graph, rng, talk, order, plan->mate);
    for (int i = 0; i < n; i++) plan->mate[i] = -1;
    for (int step = 0; step < n; step++) {
        int i = order[step], j = -1;
        if (plan->mate[i] >= 0) continue;
        bool open = graph->class[i] == plan->top && (fresh ? left > 0 : plan->quota[node[i]] > 0);
        if (open) j = find_partner(graph, plan, talk, rng, i, fresh, node);
        if (j < 0) continue;
        plan->mate[i] = j;
        plan->mate[j] = i;
        left--;
        if (!fresh) plan->quota[node[i]]--;
    }
    free(talk);
    return true;
}

struct level {
    struct graph graph;
    double *load, *extra;
    int *class, *node;
};

static void level_free(struct level *level) {
    matrix_free(&level->graph.comm);
    free(level->load);
    free(level->extra);
    free(level->class);
    free(level->node);
}

static bool level_new(struct level *level, const struct graph *finer, const struct rules *rules, const int *map,
                      int m) {
    size_t count = (size_t)m;
    level->load = calloc(count * (size_t)rules->loads, sizeof *level->load);
    level->extra = finer->extra ? calloc(count * (size_t)rules->k, sizeof *level->extra) : NULL;
    level->class = calloc(count, sizeof *level->class);
    level->node = calloc(count, sizeof *level->node);
    level->graph = (struct graph){m, {0}, level->load, level->extra, level->class};
    return level->load && level->class && level->node && (level->extra || !finer->extra) &&
           matrix_contract(&finer->comm, map, m, &level->graph.comm);
}

/* Number the bundles and say which of the level's elements each element went into. */
static int number_bundles(const struct graph *graph, struct coarsening *plan) {
    int count = 0;
    for (int i = 0; i < graph->n; i++) {
        int j = plan->mate[i];
        plan->map[i] = j >= 0 && j < i ? plan->map[j] : count++;
    }
    return count;
}

static void fill_level(const struct graph *graph, const struct rules *rules, const struct coarsening *plan,
                       const int *node, struct level *level) {
    int n = graph->n, m = level->graph.n, loads = rules->loads;
    for (int i = 0; i < n; i++) {
        int bundle = plan->map[i];
        for (int l = 0; l < loads; l++) level->load[bundle * loads + l] += graph->load[i * loads + l];
        level->class[bundle] = graph->class[i] + (plan->mate[i] >= 0);
        level->node[bundle] = node[i];
    }
    for (size_t x = 0; graph->extra && x < (size_t)rules->k; x++)
        for (size_t i = 0; i < (size_t)n; i++)
            level->extra[x * (size_t)m + (size_t)plan->map[i]] += graph->extra[x * (size_t)n + i];
}

/* Any placement of the bundles into the slots that the nodes offer: in order. quota: pairs each node can hold. */
static void seat_bundles(const struct graph *graph, const struct coarsening *plan, const int *node, int k,
                         struct level *level, int *single) {
    memset(single, 0, (size_t)k * sizeof *single);
    for (int i = 0; i < graph->n; i++) single[node[i]] += graph->class[i] == plan->top;
    for (int x = 0; x < k; x++) single[x] %= 2;
    int pair_node = 0, single_node = 0;
    for (int b = 0; b < level->graph.n; b++) {
        if (level->class[b] > plan->top) {
            while (!plan->quota[pair_node]) pair_node++;
            plan->quota[level->node[b] = pair_node]--;
        } else if (level->class[b] == plan->top) {
            while (!single[single_node]) single_node++;
            single[level->node[b] = single_node]--;
        }
    }
}

static bool refine(const struct graph *graph, const struct rules *rules, struct rng *rng, long iterations,
                   long patience, int *node) {
    struct state *state = state_new(graph, rules, node);
    bool done = state && tabu_search(state, rng, iterations, patience, false);
    if (done) memcpy(node, state->node, (size_t)graph->n * sizeof *node);
    state_free(state);
    return done;
}

static bool place_coarsest(const struct graph *graph, const struct rules *rules, const struct effort *effort,
                           struct rng *rng, int *node) {
    size_t bytes = (size_t)graph->n * sizeof *node;
    struct state *state = state_new(graph, rules, node);
    int *best = malloc(bytes), *trial = malloc(bytes);
    bool done = state && best && trial;
    double best_cost = INFINITY, best_imbalance = INFINITY;
    for (int try = 0; done && try < effort->coarse_tries; try++) {
        memcpy(trial, node, bytes);
        done = grow_placement(graph, rules->k, rng, trial);
        if (!done) break;
        state_set(state, trial);
        done = tabu_search(state, rng, effort->coarse_iterations, effort->coarse_patience, false);
        if (better(state->imbalance, state->cost, best_imbalance, best_cost) || try == 0) {
            best_cost = state->cost;
            best_imbalance = state->imbalance;
            memcpy(best, state->node, bytes);
        }
    }
    if (done) memcpy(node, best, bytes);
    state_free(state);
    free(best);
    free(trial);
    return done;
}

/* At a coarse level bundles are too heavy to meet the tolerance; asking for it would spoil the communication. */
static struct rules coarse_rules(const struct rules *rules, const struct graph *graph) {
    struct rules coarse = *rules;
    for (int l = 0; rules->balanced && l < rules->loads; l++) {
        double heaviest = 0, least = INFINITY;
        for (int i = 0; i < graph->n; i++) heaviest = fmax(heaviest, graph->load[i * rules->loads + l]);
        for (int x = 0; x < rules->k; x++)
            if (rules->target[l * rules->k + x] > 0) least = fmin(least, rules->target[l * rules->k + x]);
        if (isfinite(least)) coarse.tolerance = fmax(coarse.tolerance, fmin(0.5, heaviest / least / 4));
    }
    return coarse;
}

static bool through_level(const struct graph *graph, const struct rules *rules, const struct effort *effort,
                          struct rng *rng, bool fresh, int *node, struct coarsening *plan) {
    struct level level = {0};
    bool done = pair_up(graph, plan, rng, fresh, node) &&
                level_new(&level, graph, rules, plan->map, number_bundles(graph, plan));
    if (done) {
        fill_level(graph, rules, plan, node, &level);
        if (fresh) {
            int *single = malloc((size_t)rules->k * sizeof *single);
            if ((done = single)) seat_bundles(graph, plan, node, rules->k, &level, single);
            free(single);
        }
    }
    if (done) {
        struct rules coarse = coarse_rules(rules, &level.graph);
        done = multilevel(&level.graph, &coarse, effort, rng, fresh, level.node);
    }
    for (int i = 0; done && i < graph->n; i++) node[i] = level.node[plan->map[i]];
    level_free(&level);
    return done && refine(graph, rules, rng, effort->fine_iterations, effort->fine_patience, node);
}

bool multilevel(const struct graph *graph, const struct rules *rules, const struct effort *effort, struct rng *rng,
                bool fresh, int *node) {
    size_t n = (size_t)graph->n;
    struct coarsening plan = {0};
    plan.quota = malloc((size_t)rules->k * sizeof *plan.quota);
    plan.mate = malloc(n * sizeof *plan.mate);
    plan.map = malloc(n * sizeof *plan.map);
    bool done = plan.quota && plan.mate && plan.map;
    if (done) {
        count_pairs(graph, rules->k, node, &plan);
        if (graph->n > effort->coarse_per_node * rules->k && 3 * plan.pairs > graph->n && plan.top + 2 < MAX_LEVELS)
            done = through_level(graph, rules, effort, rng, fresh, node, &plan);
        else if (fresh) done = place_coarsest(graph, rules, effort, rng, node);
        else done = refine(graph, rules, rng, effort->coarse_iterations, effort->coarse_patience, node);
    }
    free(plan.quota);
    free(plan.mate);
    free(plan.map);
    return done;
}
