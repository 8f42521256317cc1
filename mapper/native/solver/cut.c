/* Refinement of a cut by passes of single moves, each undone back to the best point it came through. */
#include "bisect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pass {
    const struct cut_graph *graph;
    signed char *side;
    double *gain; /* what moving the vertex takes off the cut; -INFINITY once it has moved */
    int *moved;
    int count, wanted, weight; /* moves made; wanted and actual weight of side 0 */
    double cut;
};

static void start_pass(struct pass *pass) {
    const struct cut_graph *graph = pass->graph;
    pass->weight = pass->count = 0;
    pass->cut = 0;
    for (int i = 0; i < graph->n; i++) {
        const double *row = graph->comm + (size_t)i * (size_t)graph->n;
        double sums[2] = {0, 0};
        for (int j = 0; j < graph->n; j++) sums[(int)pass->side[j]] += row[j];
        int own = pass->side[i];
        pass->gain[i] = sums[1 - own] - sums[own];
        pass->cut += sums[1 - own] / 2;
        if (own == 0) pass->weight += graph->weight[i];
    }
}

/* The best vertex to move: any that keeps side 0 within `reach` of what is wanted, or brings it nearer. */
static int best_move(const struct pass *pass, int reach) {
    int best = -1, off = abs(pass->weight - pass->wanted);
    for (int i = 0; i < pass->graph->n; i++) {
        if (!(pass->gain[i] > -INFINITY) || (best >= 0 && pass->gain[i] <= pass->gain[best])) continue;
        int weight = pass->weight + (pass->side[i] ? pass->graph->weight[i] : -pass->graph->weight[i]);
        int then = abs(weight - pass->wanted);
        if (then <= reach || then < off) best = i;
    }
    return best;
}

static void move(struct pass *pass, int i) {
    const struct cut_graph *graph = pass->graph;
    *graph->work += 2 * (uint64_t)graph->n;
    const double *row = graph->comm + (size_t)i * (size_t)graph->n;
    int from = pass->side[i];
    pass->cut -= pass->gain[i];
    pass->weight += from ? graph->weight[i] : -graph->weight[i];
    for (int j = 0; j < graph->n; j++) pass->gain[j] += pass->side[j] == from ? 2 * row[j] : -2 * row[j];
    pass->side[i] = (signed char)(1 - from);
    pass->gain[i] = -INFINITY;
    pass->moved[pass->count++] = i;
}

/* One pass; returns whether it improved. A point counts once its weight is within slack, nearer is better before. */
static bool run_pass(struct pass *pass, int slack, int reach) {
    start_pass(pass);
    int best_count = 0, best_off = abs(pass->weight - pass->wanted), patience = 24 + pass->graph->n / 8;
    double best_cut = pass->cut;
    if (best_off < slack) best_off = slack;
    while (pass->count < pass->graph->n && pass->count - best_count < patience) {
        int i = best_move(pass, reach);
        if (i < 0) break;
        move(pass, i);
        int off = abs(pass->weight - pass->wanted);
        if (off < slack) off = slack;
        if (off < best_off || (off == best_off && pass->cut < best_cut - 1e-12 * fabs(best_cut))) {
            best_off = off;
            best_cut = pass->cut;
            best_count = pass->count;
        }
    }
    for (int m = best_count; m < pass->count; m++) pass->side[pass->moved[m]] ^= 1;
    pass->cut = best_cut;
    return best_count > 0;
}

double refine_cut(const struct cut_graph *graph, int wanted, int slack, int passes, signed char *side) {
    size_t n = (size_t)graph->n;
    struct pass pass = {.graph = graph, .side = side, .wanted = wanted, .cut = -1};
    pass.gain = malloc(n * sizeof *pass.gain);
    pass.moved = malloc(n * sizeof *pass.moved);
    if (pass.gain && pass.moved) {
        int heaviest = 1;
        for (size_t i = 0; i < n; i++) heaviest = graph->weight[i] > heaviest ? graph->weight[i] : heaviest;
        for (int p = 0; p < passes; p++)
            if (!run_pass(&pass, slack, slack > heaviest ? slack : heaviest)) break;
        pass.cut = fmax(pass.cut, 0); /* rounding */
    }
    free(pass.gain);
    free(pass.moved);
    return pass.cut;
}
