/* A first placement: nodes grow one after the other, each taking the element that communicates most with it. */
#include "solver.h"

#include <stdlib.h>

struct growth {
    const struct graph *graph;
    int *slots;  /* of each class on the node that grows */
    double *sum; /* what each element says to the node that grows */
    bool *placed;
};

static int next_element(const struct growth *growth, struct rng *rng, bool seed) {
    int chosen = -1, met = 0;
    for (int i = 0; i < growth->graph->n; i++) {
        if (growth->placed[i] || !growth->slots[growth->graph->class[i]]) continue;
        if (seed) { /* any element, evenly */
            if (!rng_below(rng, ++met)) chosen = i;
        } else if (chosen < 0 || growth->sum[i] > growth->sum[chosen]) {
            chosen = i;
        }
    }
    return chosen;
}

static void grow_node(struct growth *growth, struct rng *rng, int node, int count, int *result) {
    int n = growth->graph->n;
    for (int i = 0; i < n; i++) growth->sum[i] = 0;
    for (int step = 0; step < count; step++) {
        int i = next_element(growth, rng, step == 0);
        growth->placed[i] = true;
        growth->slots[growth->graph->class[i]]--;
        result[i] = node;
        matrix_add_row(growth->sum, 1, &growth->graph->comm, i);
    }
}

bool grow_placement(const struct graph *graph, int k, struct rng *rng, int *node) {
    size_t n = (size_t)graph->n;
    int *slots = calloc((size_t)k * MAX_LEVELS, sizeof *slots), *order = malloc((size_t)k * sizeof *order);
    struct growth growth = {graph, NULL, malloc(n * sizeof(double)), calloc(n, sizeof(bool))};
    bool ready = slots && order && growth.sum && growth.placed;
    if (ready) {
        for (size_t i = 0; i < n; i++) slots[node[i] * MAX_LEVELS + graph->class[i]]++;
        rng_shuffle(rng, k, order);
        for (int x = 0; x < k; x++) {
            int count = 0;
            growth.slots = slots + order[x] * MAX_LEVELS;
            for (int c = 0; c < MAX_LEVELS; c++) count += growth.slots[c];
            grow_node(&growth, rng, order[x], count, node);
        }
    }
    free(slots);
    free(order);
    free(growth.sum);
    free(growth.placed);
    return ready;
}
