/* Refinement of a cut by passes of single moves, each undone back to the best point it came through. */
#include "bisect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STRIDE = 16, WIDTH = 10 };

struct pass {
    const struct cut_graph *graph;
    signed char *side;
    double *gain; /* what moving the vertex takes off the cut; -INFINITY once it has moved */
    double *sign; /* 1 on side 0, -1 on side 1 */
    int *moved;
    int count, wanted, weight; /* moves made; wanted and actual weight of side 0 */
    double cut;
};

static void start_pass(struct pass *pass) {
    const struct cut_graph *graph = pass->graph;
    size_t n = (size_t)graph->n;
    double *to_zero = pass->gain, *to_one = pass->sign; /* what each vertex says to either side, at first */
    memset(to_zero, 0, n * sizeof *to_zero);
    memset(to_one, 0, n * sizeof *to_one);
    pass->weight = pass->count = 0;
    pass->cut = 0;
    for (size_t i = 0; i < n; i++) {
        add_row(pass->side[i] ? to_one : to_zero, graph->comm + i * n, n);
        if (pass->side[i] == 0) pass->weight += graph->weight[i];
    }
    for (size_t i = 0; i < n; i++) {
        bool zero = pass->side[i] == 0;
        pass->cut += (zero ? to_one[i] : to_zero[i]) / 2;
        pass->gain[i] = zero ? to_one[i] - to_zero[i] : to_zero[i] - to_one[i];
        pass->sign[i] = zero ? 1 : -1;
    }
}

/* The best vertex to move: any that keeps side 0 within `reach` of what is wanted, or brings it nearer. */
static int best_move(const struct pass *pass, int reach) {
    const double *gain = pass->gain;
    int best = -1, off = abs(pass->weight - pass->wanted), n = pass->graph->n;
    double most = -INFINITY;
    for (int from = 0; from < n; from += STRIDE) {
        int to = from + STRIDE < n ? from + STRIDE : n, any = 0;
        for (int i = from; i < to; i++) any |= gain[i] > most; /* most strides hold nothing better */
        for (int i = from; any && i < to; i++) {
            if (!(gain[i] > most)) continue;
            int weight = pass->weight + (pass->side[i] ? pass->graph->weight[i] : -pass->graph->weight[i]);
            int then = abs(weight - pass->wanted);
            if (then <= reach || then < off) best = i, most = gain[i];
        }
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
    add_signed(pass->gain, from ? -2 : 2, pass->sign, row, (size_t)graph->n);
    pass->side[i] = (signed char)(1 - from);
    pass->sign[i] = -pass->sign[i];
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
    pass.sign = malloc(n * sizeof *pass.sign);
    pass.moved = malloc(n * sizeof *pass.moved);
    if (pass.gain && pass.sign && pass.moved) {
        int heaviest = 1;
        for (size_t i = 0; i < n; i++) heaviest = graph->weight[i] > heaviest ? graph->weight[i] : heaviest;
        /* Wide passes may exchange whole branches; narrow ones end as near to what is wanted as can be. */
        for (int p = 0; graph->wide && p < passes / 2; p++)
            if (!run_pass(&pass, slack, slack + WIDTH * heaviest)) break;
        for (int p = 0; p < passes; p++)
            if (!run_pass(&pass, slack, slack > heaviest ? slack : heaviest)) break;
        pass.cut = fmax(pass.cut, 0); /* rounding */
    }
    free(pass.gain);
    free(pass.sign);
    free(pass.moved);
    return pass.cut;
}
