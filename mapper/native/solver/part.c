/* Improvement of large placements: the threads of a few nodes that communicate are placed anew among these nodes, as a
 * small task of its own in which everything else is fixed. */
#include "solver.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4 };

struct part {
    struct graph graph;
    struct rules rules;
    int count, nodes[MOST], *members, *node, *class;
    double *load, *extra, *target, *base, cost[MOST * MOST];
};

/* The node of someone whom a random member of a random chosen node talks to; any node where that is none. */
static int next_node(const struct state *state, struct rng *rng, const int *chosen, int count) {
    const struct block *block = &state->block[rng_below(rng, state->blocks)];
    for (int b = 0; b < state->blocks; b++)
        if (count && state->block[b].node == chosen[rng_below(rng, count)]) block = &state->block[b];
    if (!count) return block->node;
    struct row row =
        matrix_row(&state->graph->comm, state->member[block->start + rng_below(rng, block->end - block->start)]);
    for (int try = 0; try < 8 && row.count; try++) {
        int e = rng_below(rng, row.count);
        if (row.weight[e] > 0 && state->node[row_column(row, e)] != block->node) return state->node[row_column(row, e)];
    }
    return state->block[rng_below(rng, state->blocks)].node;
}

/* Two nodes, now and then three or four; fewer where no more are found. */
static bool choose_nodes(const struct state *state, struct rng *rng, struct part *part) {
    int count = 0, most = 2 + (rng_below(rng, 3) == 0) + (rng_below(rng, 6) == 0);
    for (int try = 0; try < 12 * MOST && count < most; try++) {
        int x = next_node(state, rng, part->nodes, count);
        bool known = false;
        for (int m = 0; m < count; m++) known |= part->nodes[m] == x;
        if (!known) part->nodes[count++] = x;
    }
    part->rules.k = count;
    return count > 1;
}

static int index_of(const struct part *part, int node) {
    for (int m = 0; m < part->rules.k; m++)
        if (part->nodes[m] == node) return m;
    return -1;
}

static bool part_allocate(const struct state *state, struct part *part) {
    size_t k = (size_t)part->rules.k, loads = (size_t)part->rules.loads, count = 1;
    for (int b = 0; b < state->blocks; b++)
        if (index_of(part, state->block[b].node) >= 0) count += (size_t)(state->block[b].end - state->block[b].start);
    part->members = malloc(count * sizeof *part->members);
    part->node = malloc(count * sizeof *part->node);
    part->class = calloc(count, sizeof *part->class);
    part->load = malloc(count * loads * sizeof *part->load);
    part->extra = calloc(count * k, sizeof *part->extra);
    part->target = malloc(loads * k * sizeof *part->target);
    part->base = calloc(loads * k, sizeof *part->base);
    return part->members && part->node && part->class && part->load && part->extra && part->target && part->base;
}

static void part_free(struct part *part) {
    matrix_free(&part->graph.comm);
    free(part->members);
    free(part->node);
    free(part->class);
    free(part->load);
    free(part->extra);
    free(part->target);
    free(part->base);
}

static void take_members(const struct state *state, struct part *part) {
    int loads = part->rules.loads;
    part->count = 0;
    for (int b = 0; b < state->blocks; b++) {
        int x = index_of(part, state->block[b].node);
        for (int p = state->block[b].start; x >= 0 && p < state->block[b].end; p++) {
            int a = part->count++, i = state->member[p];
            part->members[a] = i;
            part->node[a] = x;
            memcpy(part->load + a * loads, state->graph->load + i * loads, (size_t)loads * sizeof *part->load);
        }
    }
}

static void take_rules(const struct state *state, struct part *part) {
    const struct rules *rules = state->rules;
    int k = part->rules.k, all = rules->k;
    for (int x = 0; x < k; x++)
        for (int y = 0; y < k; y++) part->cost[x * k + y] = rules->cost[part->nodes[x] * all + part->nodes[y]];
    for (int l = 0; rules->balanced && l < rules->loads; l++)
        for (int x = 0; x < k; x++) {
            part->target[l * k + x] = rules->target[l * all + part->nodes[x]];
            if (rules->base) part->base[l * k + x] = rules->base[l * all + part->nodes[x]];
        }
    part->rules.cost = part->cost;
    part->rules.target = part->target;
    part->rules.base = part->base;
}

/* What each member costs on each of the nodes through those who stand still: all it costs, less what the members are
 * to blame for. On flat distances, and without pins, that is the same everywhere. */
static void take_extra(const struct state *state, struct part *part) {
    int k = part->rules.k, count = part->count;
    for (int x = 0; x < k; x++) {
        const double *gain = state->gain + (size_t)part->nodes[x] * (size_t)state->graph->n;
        double *extra = part->extra + (size_t)x * (size_t)count;
        for (int a = 0; a < count; a++) {
            struct row row = matrix_row(&part->graph.comm, a);
            extra[a] = gain[part->members[a]];
            for (int e = 0; e < row.count; e++)
                extra[a] -= part->cost[x * k + part->node[row_column(row, e)]] * row.weight[e];
        }
    }
}

static bool part_new(const struct state *state, struct part *part) {
    if (!part_allocate(state, part)) return false;
    take_members(state, part);
    if (!matrix_part(&state->graph->comm, part->members, part->count, &part->graph.comm)) return false;
    take_rules(state, part);
    bool alike = state->rules->flat && !state->graph->extra;
    if (!alike) take_extra(state, part);
    part->graph.n = part->count;
    part->graph.load = part->load;
    part->graph.class = part->class;
    part->graph.extra = alike ? NULL : part->extra;
    *state->rules->work += matrix_size(&part->graph.comm) * (alike ? 1 : 1 + (uint64_t)part->rules.k);
    return true;
}

/* Bring the members to the nodes found for them, by swaps of the whole placement. */
static void apply_part(struct state *state, const struct part *part, const int *found) {
    for (int a = 0; a < part->count; a++) {
        int wanted = part->nodes[found[a]], here = state->node[part->members[a]], other = -1;
        if (here == wanted) continue;
        for (int b = 0; b < part->count; b++) { /* one who leaves there, best of all for here */
            if (state->node[part->members[b]] != wanted || part->nodes[found[b]] == wanted) continue;
            other = b;
            if (part->nodes[found[b]] == here) break;
        }
        if (other >= 0) state_swap(state, part->members[a], part->members[other]);
    }
}

bool improve_part(struct state *state, struct rng *rng, long iterations, long patience, bool *improved) {
    struct part part = {.rules = *state->rules};
    *improved = false;
    if (!choose_nodes(state, rng, &part)) return true;
    struct state *small = NULL;
    bool done = part_new(state, &part) && (small = state_new(&part.graph, &part.rules, part.node));
    if (done) {
        double cost = small->cost, imbalance = small->imbalance;
        const struct bisecting how = {MOST, 1, false, part.rules.k > 2 ? SHAKEN : PLAIN}; /* two are cut exactly */
        done = bisect_placement(&part.graph, &part.rules, rng, &how, part.node);
        if (done) state_set(small, part.node);
        done = done && tabu_search(small, rng, iterations, patience, false);
        *improved = done && better(small->imbalance, small->cost, imbalance, cost);
        if (*improved) apply_part(state, &part, small->node);
    }
    state_free(small);
    part_free(&part);
    return done;
}
