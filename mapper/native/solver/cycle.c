/* A placement improved through levels that keep together what two placements agree on. */
#include "seating.h"

#include <math.h>
#include <stdlib.h>

/* A way down through the levels and up again: see seating_improve. */
struct cycle {
    struct seating *seating;
    struct rng *rng;
    double wide;
    int limit; /* threads in the heaviest bundle that may be made */
};

static bool refine_level(const struct cycle *cycle, const struct bundles *level, const int *first, const int *second,
                         int *node);

static bool refine_coarser(const struct cycle *cycle, const struct bundles *level, const int *map, int count,
                           const int *first, const int *second, int *node) {
    struct bundles coarse = {0};
    size_t m = (size_t)count;
    int *at = malloc(3 * m * sizeof *at);
    bool done = at && bundles_join(level, map, count, &coarse);
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
        count = bundles_pair(level, cycle->rng, cycle->limit, first, second, map, seating->order);
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
