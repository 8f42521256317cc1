/* A placement improved through levels that keep together what two placements agree on. */
#include "seating.h"

#include <math.h>
#include <stdlib.h>

enum { LOOK = 96 };

/* A way down through the levels and up again: see seating_improve. */
struct cycle {
    struct seating *seating;
    struct rng *rng;
    double wide;
    int limit; /* threads in the heaviest bundle that may be made */
};

static void bundles_free(struct bundles *bundles) {
    matrix_free(&bundles->comm);
    free(bundles->weight);
    free(bundles->extra);
}

/* first, second: where the bundles are in the parents; map[i]: the number of i's pair, negative while it has none;
 * limit: threads in the heaviest pair. */
struct matching {
    const struct bundles *level;
    const int *first, *second;
    int *map, limit;
};

/* A free bundle that may join i, and to which `to` talks most for its weight; negative: none. friend: to whom it talks
 * most of all. */
static int find_mate(const struct matching *matching, int i, int to, int *friend) {
    const int *first = matching->first, *second = matching->second, *weight = matching->level->weight;
    struct row row = matrix_row(&matching->level->comm, to);
    int mate = -1, room = matching->limit - weight[i];
    double most = 0, loudest = 0;
    if (to != i && row.to && row.count > LOOK) row.count = LOOK; /* busy friends have too many others for each time */
    for (int e = 0; e < row.count; e++) {
        int j = row_column(row, e);
        if (row.weight[e] > loudest) loudest = row.weight[e], *friend = j;
        if (matching->map[j] >= 0 || j == i || first[j] != first[i] || second[j] != second[i]) continue;
        if (weight[j] > room || !(row.weight[e] > most * weight[j])) continue;
        most = row.weight[e] / weight[j];
        mate = j;
    }
    return mate;
}

/* Pairs of those that talk most for their weight, or to the same one, and are together in both parents; map[i]: the
 * number of i's pair. Returns how many there are. */
static int pair(const struct cycle *cycle, const struct matching *matching) {
    int n = matching->level->comm.n, count = 0, *order = cycle->seating->order, *map = matching->map;
    rng_shuffle(cycle->rng, n, order);
    for (int i = 0; i < n; i++) map[i] = -1;
    for (int step = 0; step < n; step++) {
        int i = order[step], friend = -1, unused;
        if (map[i] >= 0) continue;
        int mate = find_mate(matching, i, i, &friend);
        if (mate < 0 && friend >= 0) mate = find_mate(matching, i, friend, &unused);
        if (mate >= 0) map[mate] = count;
        map[i] = count++;
    }
    *cycle->seating->rules->work += 2 * matrix_size(&matching->level->comm) + 20 * (uint64_t)n;
    return count;
}

static bool bundle(const struct cycle *cycle, const struct bundles *level, const int *map, int count,
                   struct bundles *coarse) {
    const struct rules *rules = cycle->seating->rules;
    size_t n = (size_t)level->comm.n, m = (size_t)count, k = (size_t)rules->k;
    coarse->weight = calloc(m, sizeof *coarse->weight);
    coarse->extra = level->extra ? calloc(m * k, sizeof *coarse->extra) : NULL;
    if (!coarse->weight || (level->extra && !coarse->extra)) return false;
    for (size_t i = 0; i < n; i++) coarse->weight[map[i]] += level->weight[i];
    for (size_t x = 0; level->extra && x < k; x++)
        for (size_t i = 0; i < n; i++) coarse->extra[x * m + (size_t)map[i]] += level->extra[x * n + i];
    *rules->work += 2 * matrix_size(&level->comm) + 20 * (uint64_t)n;
    return matrix_contract(&level->comm, map, count, &coarse->comm);
}

static bool refine_level(const struct cycle *cycle, const struct bundles *level, const int *first, const int *second,
                         int *node);

static bool refine_coarser(const struct cycle *cycle, const struct bundles *level, const int *map, int count,
                           const int *first, const int *second, int *node) {
    struct bundles coarse = {0};
    size_t m = (size_t)count;
    int *at = malloc(3 * m * sizeof *at);
    bool done = at && bundle(cycle, level, map, count, &coarse);
    for (int i = 0; done && i < level->comm.n; i++) {
        at[map[i]] = first[i];
        at[m + (size_t)map[i]] = second[i];
        at[2 * m + (size_t)map[i]] = node[i];
    }
    done = done && refine_level(cycle, &coarse, at, at + m, at + 2 * m);
    for (int i = 0; done && i < level->comm.n; i++) node[i] = at[2 * m + (size_t)map[i]];
    bundles_free(&coarse);
    free(at);
    return done;
}

/* Down through the coarser levels, then improve this one with as much slack as its bundles need. */
static bool refine_level(const struct cycle *cycle, const struct bundles *level, const int *first, const int *second,
                         int *node) {
    struct seating *seating = cycle->seating;
    int n = level->comm.n, heaviest = 1, count = n, *map = malloc((size_t)n * sizeof *map);
    bool done = map != NULL;
    for (int i = 0; i < n; i++) heaviest = level->weight[i] > heaviest ? level->weight[i] : heaviest;
    if (done && n > 2 * seating->k)
        count = pair(cycle, &(const struct matching){level, first, second, map, cycle->limit});
    if (20 * count < 19 * n) done = refine_coarser(cycle, level, map, count, first, second, node);
    free(map);
    if (!done) return false;
    int slack = cycle->wide == 0 ? 0 : heaviest > 1 ? (int)ceil(cycle->wide * heaviest) : 1;
    seating_start(seating, level, slack, node);
    if (slack) seating_refine(seating);
    if (heaviest > 1) seating_chain(seating, cycle->rng);
    for (int i = 0; i < n; i++) node[i] = seating->node[i];
    return true;
}

bool seating_improve(struct seating *seating, const struct bundles *threads, struct rng *rng, double wide,
                     const int *first, const int *second, int *node) {
    int least = threads->comm.n;
    for (int x = 0; x < seating->k; x++)
        if (seating->size[x] > 0 && seating->size[x] < least) least = seating->size[x];
    /* Without slack whole branches change places, else bundles must be light enough to move. */
    const struct cycle cycle = {seating, rng, wide, 1 + (int)((wide == 0 ? 0.6 : 0.3) * least)};
    if (!refine_level(&cycle, threads, first, second, node)) return false;
    seating->slack = 0;
    seating_restore(seating);
    seating_chain(seating, rng);
    for (int i = 0; i < threads->comm.n; i++) node[i] = seating->node[i];
    return true;
}
