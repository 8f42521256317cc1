/* Tabu search over swaps: always take the best swap that does not undo a recent one, remember the best placement.
 *
 * Loads enter as a penalty whose weight rises while the placement is out of balance and falls while it is in, so that
 * the search crosses the border of what is allowed again and again.
 */
#include "solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct choice {
    int i, j;
    double value;
};

struct search {
    struct state *state;
    struct rng *rng;
    long iteration, *banned; /* banned[i * k + x]: element i may not go to node x until then */
    double *talk;            /* one element's row of the matrix, as a whole */
    double *leave, *gap;     /* of each position: what its leaving for the other node costs, see struct pairing */
    double price, weight;    /* of imbalance, of communication */
    double best_cost, best_imbalance;
};

/* Value of a swap whose communication part is known; sets *allowed. */
static double judge(const struct search *search, int i, int j, double cost, bool *allowed) {
    const struct state *state = search->state;
    int k = state->rules->k, a = state->node[i], b = state->node[j];
    double imbalance = search->price > 0 ? state_swap_imbalance(state, i, j) : 0;
    *allowed = search->banned[(size_t)i * (size_t)k + (size_t)b] <= search->iteration &&
               search->banned[(size_t)j * (size_t)k + (size_t)a] <= search->iteration;
    if (!*allowed)
        *allowed = better(state->imbalance + imbalance, state->cost + cost, search->best_imbalance, search->best_cost);
    return search->weight * cost + search->price * imbalance;
}

/* Least value that any swap between the blocks' nodes can have through balance alone. */
static double balance_floor(const struct search *search, int a, int b) {
    const struct state *state = search->state;
    if (!(search->price > 0)) return 0;
    return -search->price * (node_imbalance(state->rules, state->sum, a) + node_imbalance(state->rules, state->sum, b));
}

/* Two blocks as scan_blocks sees them; positions in member[]. */
struct pairing {
    const struct block *left, *right;
    double *leave, *gap; /* of each position: what leaving for the other node costs; the right side's with the floor */
    double floor, pair;
    bool bounded;
};

/* The swaps of the element at position p with all of the right block; those that cannot win are not judged. */
static void scan_row(struct search *search, const struct pairing *pairing, int p, struct choice *best) {
    const struct state *state = search->state;
    const int *member = state->member;
    const struct row thin = matrix_row(&state->graph->comm, member[p]);
    const double *gap = pairing->gap, *row = thin.to ? search->talk : thin.weight;
    const double leave = pairing->leave[p], floor = pairing->floor, pair = pairing->pair;
    const bool bounded = pairing->bounded;
    double value = best->value;
    for (int e = 0; thin.to && e < thin.count; e++) search->talk[thin.to[e]] = thin.weight[e];
    for (int q = pairing->right->start, end = pairing->right->end; q < end; q++) {
        if (bounded && leave + gap[q] >= value) continue;
        double communication = leave + gap[q] - floor + pair * row[member[q]];
        if (communication + floor >= value) continue;
        bool allowed;
        double judged =
            judge(search, member[p], member[q], search->weight > 0 ? communication / search->weight : 0, &allowed);
        if (allowed && judged < value) {
            value = judged;
            *best = (struct choice){member[p], member[q], judged};
        }
    }
    for (int e = 0; thin.to && e < thin.count; e++) search->talk[thin.to[e]] = 0;
}

/* Those who may not move, and could make no record either, drop out of a side's bounds. lowest: the least that anyone
 * of the other side adds. Returns the least that is left. */
static double drop_banned(const struct search *search, const struct block *side, int to, double lowest,
                          double *values) {
    const struct state *state = search->state;
    size_t k = (size_t)state->rules->k;
    double record = search->weight * (search->best_cost - state->cost), least = INFINITY;
    for (int p = side->start; p < side->end; p++) {
        bool banned = search->banned[(size_t)state->member[p] * k + (size_t)to] > search->iteration;
        if (banned && values[p] + lowest >= record) values[p] = INFINITY;
        if (values[p] < least) least = values[p];
    }
    return least;
}

/* Look through the swaps between two blocks; bounds skip rows and pairs that cannot win. The row that gains most by
 * leaving comes first, so that the bounds bite at once. */
static void scan_blocks(struct search *search, const struct block *left, const struct block *right,
                        struct choice *best) {
    const struct state *state = search->state;
    const double *cost = state->rules->cost, weight = search->weight;
    size_t n = (size_t)state->graph->n, k = (size_t)state->rules->k, a = (size_t)left->node, b = (size_t)right->node;
    const double *gain_a = state->gain + a * n, *gain_b = state->gain + b * n;
    const int *member = state->member;
    struct pairing pairing = {left,
                              right,
                              search->leave,
                              search->gap,
                              balance_floor(search, left->node, right->node),
                              weight * (2 * cost[a * k + b] - cost[a * k + a] - cost[b * k + b]),
                              true};
    double least = INFINITY, lowest = INFINITY, *gap = search->gap, *leave = search->leave;
    int first = left->start;
    for (int q = right->start; q < right->end; q++) {
        gap[q] = weight * (gain_a[member[q]] - gain_b[member[q]]) + pairing.floor;
        if (gap[q] < least) least = gap[q];
    }
    for (int p = left->start; p < left->end; p++) {
        leave[p] = weight * (gain_b[member[p]] - gain_a[member[p]]);
        if (leave[p] < lowest) lowest = leave[p];
    }
    if (!(search->price > 0) && pairing.pair >= 0) {
        double lowest_left = drop_banned(search, left, right->node, least, leave);
        least = drop_banned(search, right, left->node, lowest, gap);
        lowest = lowest_left;
    }
    for (int p = left->start; p < left->end; p++)
        if (leave[p] <= lowest) {
            first = p;
            break;
        }
    /* Where swapped elements talk, the pair's term comes on top; it lowers the value only on odd distances. */
    pairing.bounded = pairing.pair >= 0;
    uint64_t across = (uint64_t)(right->end - right->start), looked = across + (uint64_t)(left->end - left->start);
    if (!pairing.bounded || lowest + least < best->value) {
        scan_row(search, &pairing, first, best);
        looked += 3 * across;
        for (int p = left->start; p < left->end; p++) {
            if (p == first || (pairing.bounded && leave[p] + least >= best->value)) continue;
            scan_row(search, &pairing, p, best);
            looked += 3 * across; /* these take longer */
        }
    }
    *state->rules->work += looked;
}

static struct choice best_swap(struct search *search) {
    const struct state *state = search->state;
    struct choice best = {-1, -1, INFINITY};
    for (int x = 0; x < state->blocks; x++)
        for (int y = x + 1; y < state->blocks; y++)
            if (state->block[x].class == state->block[y].class && state->block[x].node != state->block[y].node)
                scan_blocks(search, &state->block[x], &state->block[y], &best);
    return best;
}

/* Best swaps, block pair by block pair, until no pair has one that gains; only pairs that changed are looked at. A
 * start that comes when all work is done still gets a little. */
static void descend(struct search *search, bool *searched) {
    struct state *state = search->state;
    const uint64_t spare = *state->rules->work + state->rules->allowed / 16;
    const uint64_t most = spare > state->rules->allowed ? spare : state->rules->allowed;
    int blocks = state->blocks;
    memset(searched, 0, (size_t)blocks * (size_t)blocks * sizeof *searched);
    for (bool changed = true; changed && *state->rules->work <= most;) {
        changed = false;
        for (int x = 0; x < blocks; x++)
            for (int y = x + 1; y < blocks; y++) {
                const struct block *left = &state->block[x], *right = &state->block[y];
                if (searched[x * blocks + y] || left->class != right->class || left->node == right->node) continue;
                for (;;) {
                    struct choice swap = {-1, -1, -1e-12 * (state->cost + search->price * state->imbalance)};
                    scan_blocks(search, left, right, &swap);
                    if (swap.i < 0 || *state->rules->work > most) break;
                    state_swap(state, swap.i, swap.j);
                    changed = true;
                    for (int z = 0; z < blocks; z++) {
                        searched[(z < x ? z : x) * blocks + (z < x ? x : z)] = false;
                        searched[(z < y ? z : y) * blocks + (z < y ? y : z)] = false;
                    }
                }
                searched[x * blocks + y] = true;
            }
    }
}

/* Descend; while the result is out of balance, raise the price of that and go on. */
static void descend_balanced(struct search *search, bool *searched) {
    double price = search->price;
    for (int round = 0; round < 8; round++) {
        descend(search, searched);
        if (!(price > 0) || search->state->imbalance <= 1e-11) break;
        search->price *= 4;
    }
    search->price = price;
}

static void apply(struct search *search, struct choice swap, int tenure) {
    struct state *state = search->state;
    int k = state->rules->k, a = state->node[swap.i], b = state->node[swap.j];
    long until = search->iteration + 1 + tenure + rng_below(search->rng, tenure + 1);
    search->banned[(size_t)swap.i * (size_t)k + (size_t)a] = until;
    search->banned[(size_t)swap.j * (size_t)k + (size_t)b] = until;
    state_swap(state, swap.i, swap.j);
}

/* A price at which the imbalance of a typical swap weighs as much as its communication. */
static double first_price(const struct state *state) {
    double all = 0;
    size_t cells = (size_t)state->graph->n * (size_t)state->rules->k;
    for (size_t cell = 0; cell < cells; cell++) all += state->gain[cell];
    return 1e-9 + 2 * all / (double)cells;
}

static void follow_balance(struct search *search, int *inside, int *outside) {
    bool balanced = search->state->imbalance <= 1e-11;
    *inside = balanced ? *inside + 1 : 0;
    *outside = balanced ? 0 : *outside + 1;
    if (*inside >= 6) search->price *= 0.7, *inside = 0;
    if (*outside >= 6) search->price *= 1.5, *outside = 0;
    search->price = fmin(fmax(search->price, 1e-12), 1e12);
}

static void run(struct search *search, long iterations, long patience, int *best_node) {
    struct state *state = search->state;
    size_t bytes = (size_t)state->graph->n * sizeof *best_node;
    int inside = 0, outside = 0, tenure = state->graph->n / 8 < 2 ? 2 : state->graph->n / 8;
    if (tenure > 12) tenure = 12;
    bool follow = search->weight > 0 && search->price > 0;
    for (long last = 0; search->iteration < iterations && search->iteration - last < patience; search->iteration++) {
        if (search->weight == 0 ? state->imbalance == 0 : *state->rules->work > state->rules->allowed) break;
        struct choice swap = best_swap(search);
        if (swap.i < 0) {
            if (search->iteration - last > 2 * tenure + 2) break; /* nothing to swap at all */
            continue;
        }
        apply(search, swap, tenure);
        if (better(state->imbalance, state->cost, search->best_imbalance, search->best_cost)) {
            search->best_imbalance = state->imbalance;
            search->best_cost = state->cost;
            memcpy(best_node, state->node, bytes);
            last = search->iteration;
        }
        if (follow) follow_balance(search, &inside, &outside);
    }
}

bool tabu_search(struct state *state, struct rng *rng, long iterations, long patience, bool loads_only) {
    size_t n = (size_t)state->graph->n, k = (size_t)state->rules->k;
    struct search search = {.state = state, .rng = rng, .weight = loads_only ? 0 : 1};
    search.banned = calloc(n * k, sizeof *search.banned);
    search.talk = calloc(n, sizeof *search.talk);
    search.leave = malloc(n * sizeof *search.leave);
    search.gap = malloc(n * sizeof *search.gap);
    int *best_node = malloc(n * sizeof *best_node);
    bool *searched = malloc((size_t)state->blocks * (size_t)state->blocks * sizeof *searched);
    bool ready = search.banned && search.talk && search.leave && search.gap && best_node && searched;
    if (ready) {
        if (state->rules->balanced) search.price = loads_only ? 1 : first_price(state);
        search.best_cost = search.best_imbalance = -INFINITY; /* a ban is lifted by a record only; none holds yet */
        memcpy(best_node, state->node, n * sizeof *best_node);
        double before = state->cost, imbalance = state->imbalance;
        descend_balanced(&search, searched);
        search.best_cost = state->cost;
        search.best_imbalance = state->imbalance;
        if (!loads_only && better(imbalance, before, state->imbalance, state->cost)) {
            search.best_cost = before;
            search.best_imbalance = imbalance;
        } else {
            memcpy(best_node, state->node, n * sizeof *best_node);
        }
        run(&search, iterations, patience, best_node);
        state_set(state, best_node);
    }
    free(search.banned);
    free(search.talk);
    free(search.leave);
    free(search.gap);
    free(best_node);
    free(searched);
    return ready;
}
