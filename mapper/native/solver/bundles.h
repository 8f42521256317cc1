/* Bundles of threads that stay together: single threads, pairs of them, pairs of pairs. */
#ifndef NUMAPLAN_BUNDLES_H
#define NUMAPLAN_BUNDLES_H

#include "solver.h"

/* weight: threads in each; extra: sets x n, what each costs beside the communication, by whatever the sets are (nodes,
 * or side 1 of a cut beyond side 0), or NULL; work: elements looked at, as in struct rules. */
struct bundles {
    struct matrix comm;
    int *weight, sets;
    double *extra;
    uint64_t *work;
};

/* Room for n bundles without weight; the matrix comes later. False without memory. */
bool bundles_new(struct bundles *bundles, int n, int sets, uint64_t *work);
void bundles_free(struct bundles *bundles);

/* Pair those that talk most for their weight; those without a free partner join one of the same friend, those that talk
 * to nobody each other. limit: threads in the heaviest pair; first, second: two placements in which the two of a pair
 * are on the same node (NULL: anyone may pair, else who talks to nobody stays alone); order: scratch. map[i]: the number
 * of i's pair. Returns how many there are. */
int bundles_pair(const struct bundles *bundles, struct rng *rng, int limit, const int *first, const int *second,
                 int *map, int *order);

/* Those with the same map[i] in 0 .. m-1 become one. False without memory; coarse is to be freed in any case. */
bool bundles_join(const struct bundles *bundles, const int *map, int m, struct bundles *coarse);

#endif
