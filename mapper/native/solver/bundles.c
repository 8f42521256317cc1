/* Pairing bundles and joining them. */
#include "bundles.h"

#include <stdlib.h>

enum { LOOK = 96 };

bool bundles_new(struct bundles *bundles, int n, int sets, uint64_t *work) {
    size_t count = (size_t)n;
    *bundles = (struct bundles){.sets = sets, .work = work};
    bundles->weight = calloc(count + 1, sizeof *bundles->weight);
    bundles->extra = sets ? calloc((size_t)sets * count + 1, sizeof *bundles->extra) : NULL;
    return bundles->weight && (bundles->extra || !sets);
}

void bundles_free(struct bundles *bundles) {
    matrix_free(&bundles->comm);
    free(bundles->weight);
    free(bundles->extra);
}

/* What bundles_pair was asked, and the pairs so far. */
struct pairing {
    const struct bundles *bundles;
    const int *first, *second;
    int limit, *map;
};

/* Free bundle that `to` talks to most for its weight and that may join i; friend: the heaviest of all. */
static int strongest(const struct pairing *pairing, int to, int i, int *friend) {
    const int *weight = pairing->bundles->weight, *first = pairing->first, *second = pairing->second;
    struct row row = matrix_row(&pairing->bundles->comm, to);
    int best = -1;
    double most = 0, loudest = 0;
    if (to != i && row.to && row.count > LOOK) { /* a busy friend has too many others to go through each time */
        int shift = (int)((uint64_t)i * 2654435761u % (uint64_t)(row.count - LOOK));
        row = (struct row){LOOK, row.to + shift, row.weight + shift};
    }
    for (int e = 0; e < row.count; e++) {
        int j = row_column(row, e);
        if (row.weight[e] > loudest) loudest = row.weight[e], *friend = j;
        if (pairing->map[j] >= 0 || j == i || weight[i] + weight[j] > pairing->limit) continue;
        if (first && (first[j] != first[i] || second[j] != second[i])) continue;
        double rating = row.weight[e] / weight[j];
        if (rating > most) most = rating, best = j;
    }
    return best;
}

int bundles_pair(const struct bundles *bundles, struct rng *rng, int limit, const int *first, const int *second,
                 int *map, int *order) {
    const struct pairing pairing = {bundles, first, second, limit, map};
    int n = bundles->comm.n, count = 0, lonely = -1;
    *bundles->work += 2 * matrix_size(&bundles->comm) + 30 * (uint64_t)n;
    rng_shuffle(rng, n, order);
    for (int i = 0; i < n; i++) map[i] = -1;
    for (int step = 0; step < n; step++) {
        int i = order[step], friend = -1, unused = -1;
        if (map[i] >= 0) continue;
        int j = strongest(&pairing, i, i, &friend);
        if (j < 0 && friend >= 0) j = strongest(&pairing, friend, i, &unused);
        if (friend < 0 && !first) {
            bool pair = lonely >= 0 && bundles->weight[i] + bundles->weight[lonely] <= limit;
            map[i] = pair ? map[lonely] : count++;
            lonely = pair ? -1 : i;
            continue;
        }
        if (j >= 0) map[j] = count;
        map[i] = count++;
    }
    return count;
}

bool bundles_join(const struct bundles *bundles, const int *map, int m, struct bundles *coarse) {
    size_t n = (size_t)bundles->comm.n;
    if (!bundles_new(coarse, m, bundles->sets, bundles->work)) return false;
    *bundles->work += 2 * matrix_size(&bundles->comm) + 20 * (uint64_t)m;
    for (size_t i = 0; i < n; i++) coarse->weight[map[i]] += bundles->weight[i];
    for (size_t x = 0; x < (size_t)bundles->sets; x++)
        for (size_t i = 0; i < n; i++) coarse->extra[x * (size_t)m + (size_t)map[i]] += bundles->extra[x * n + i];
    return matrix_contract(&bundles->comm, map, m, &coarse->comm);
}
