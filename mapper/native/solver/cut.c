/* Refinement of a cut by passes of single moves, each undone back to the best point on its way. */
#include "bisect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STRIDE = 16, WIDTH = 10, RUN = 16 };

struct pass {
    const struct bundles *graph;
    signed char *side;
    double *gain; /* what moving the vertex takes off the cut; -INFINITY once it has moved */
    double *sign; /* 1 on side 0, -1 on side 1 */
    double *top;  /* top[2 * r + s]: the greatest gain of side s among run r of vertices; on thin graphs only */
    bool *stale;  /* whether a run's tops are out of date */
    int *moved;
    int count, wanted, weight; /* moves made; wanted and actual weight of side 0 */
    double cut;
};

static void start_pass(struct pass *pass) {
    const struct bundles *graph = pass->graph;
    size_t n = (size_t)graph->comm.n;
    double *to_zero = pass->gain, *to_one = pass->sign; /* what each vertex says to either side, at first */
    memset(to_zero, 0, n * sizeof *to_zero);
    memset(to_one, 0, n * sizeof *to_one);
    *graph->work += matrix_size(&graph->comm) / (graph->comm.cells ? 4 : 1);
    pass->weight = pass->count = 0;
    pass->cut = 0;
    for (size_t i = 0; i < n; i++) {
        matrix_add_row(pass->side[i] ? to_one : to_zero, 1, &graph->comm, (int)i);
        if (pass->side[i] == 0) pass->weight += graph->weight[i];
    }
    for (size_t i = 0; i < n; i++) {
        bool zero = pass->side[i] == 0;
        double pull = graph->extra ? graph->extra[i] : 0;
        pass->cut += (zero ? to_one[i] : to_zero[i]) / 2 + fmax(0, zero ? -pull : pull);
        pass->gain[i] = zero ? to_one[i] - to_zero[i] - pull : to_zero[i] - to_one[i] + pull;
        pass->sign[i] = zero ? 1 : -1;
    }
    if (pass->stale) memset(pass->stale, true, n / RUN + 1);
}

/* Whether moving i keeps side 0 within `reach` of what is wanted, or brings it nearer. */
static inline bool may_move(const struct pass *pass, int i, int reach) {
    int step = pass->graph->weight[i], off = abs(pass->weight - pass->wanted);
    int then = abs(pass->weight + (pass->side[i] ? step : -step) - pass->wanted);
    return then <= reach || then < off;
}

/* The first with the greatest gain of those whose sign is at least `low` and at most `high`; negative: none. */
WIDE static int greatest(const double *gain, const double *sign, double low, double high, int n) {
    const four none = {-INFINITY, -INFINITY, -INFINITY, -INFINITY}, from = {low, low, low, low},
               to = {high, high, high, high};
    four top = none;
    mask number = {0, 1, 2, 3}, best = {-1, -1, -1, -1};
    int i = 0;
    for (; i + 4 <= n; i += 4, number += 4) {
        four value = *(const four *)(gain + i), side = *(const four *)(sign + i);
        mask more = (value > top) & (side >= from) & (side <= to);
        top = (four)(((mask)value & more) | ((mask)top & ~more));
        best = (number & more) | (best & ~more);
    }
    double most = top[0];
    int64_t chosen = best[0];
    for (int lane = 1; lane < 4; lane++)
        if (top[lane] > most || (top[lane] == most && best[lane] < chosen)) most = top[lane], chosen = best[lane];
    for (; i < n; i++)
        if (gain[i] > most && sign[i] >= low && sign[i] <= high) most = gain[i], chosen = i;
    return (int)chosen;
}

/* The best vertex to move, of all. */
WIDE static int best_of_all(const struct pass *pass, int reach) {
    const double *gain = pass->gain;
    int best = -1, n = pass->graph->comm.n, off = pass->weight - pass->wanted;
    /* A side that is too light by more than the reach gives nothing away. */
    double low = off < reach ? -1 : 0, high = off > -reach ? 1 : 0;
    int first = greatest(gain, pass->sign, low, high, n);
    if (first < 0 || may_move(pass, first, reach)) return first;
    double most = -INFINITY;
    for (int from = 0; from < n; from += STRIDE) {
        int to = from + STRIDE < n ? from + STRIDE : n, any = 0;
        for (int i = from; i < to; i++) any |= gain[i] > most; /* most strides hold nothing better */
        for (int i = from; any && i < to; i++)
            if (gain[i] > most && may_move(pass, i, reach)) best = i, most = gain[i];
    }
    return best;
}

static void refresh(struct pass *pass, int run) {
    int n = pass->graph->comm.n, to = (run + 1) * RUN < n ? (run + 1) * RUN : n;
    double *top = pass->top + 2 * run;
    top[0] = top[1] = -INFINITY;
    for (int i = run * RUN; i < to; i++)
        if (pass->gain[i] > top[pass->side[i]]) top[pass->side[i]] = pass->gain[i];
    pass->stale[run] = false;
}

/* The same by the tops of each run: moves change few gains of a thin graph. */
static int best_by_runs(struct pass *pass, int reach) {
    int best = -1, n = pass->graph->comm.n, off = pass->weight - pass->wanted;
    double most = -INFINITY;
    for (int run = 0; run * RUN < n; run++) {
        if (pass->stale[run]) refresh(pass, run);
        const double *top = pass->top + 2 * run;
        /* A side that is too light by more than the reach gives nothing away. */
        bool worth = (top[0] > most && off > -reach) || (top[1] > most && off < reach);
        for (int i = run * RUN; worth && i < n && i < (run + 1) * RUN; i++)
            if (pass->gain[i] > most && may_move(pass, i, reach)) best = i, most = pass->gain[i];
    }
    return best;
}

static void move(struct pass *pass, int i) {
    const struct bundles *graph = pass->graph;
    struct row row = matrix_row(&graph->comm, i);
    *graph->work += 60 + (uint64_t)graph->comm.n / (row.to ? 8 : 2) + (row.to ? 10 * (uint64_t)row.count : 0);
    int from = pass->side[i];
    pass->cut -= pass->gain[i];
    pass->weight += from ? graph->weight[i] : -graph->weight[i];
    matrix_add_signed(pass->gain, from ? -2 : 2, pass->sign, &graph->comm, i);
    for (int e = 0; pass->stale && e < row.count; e++) pass->stale[row_column(row, e) / RUN] = true;
    if (pass->stale) pass->stale[i / RUN] = true;
    pass->side[i] = (signed char)(1 - from);
    pass->sign[i] = -pass->sign[i];
    pass->gain[i] = -INFINITY;
    pass->moved[pass->count++] = i;
}

/* One pass; returns whether it improved. A point counts once its weight is within slack, nearer is better before. */
static bool run_pass(struct pass *pass, int slack, int reach) {
    start_pass(pass);
    int n = pass->graph->comm.n, patience = 24 + (n < 4096 ? n / 8 : 512);
    int best_count = 0, best_off = abs(pass->weight - pass->wanted);
    double best_cut = pass->cut;
    if (best_off < slack) best_off = slack;
    while (pass->count < n && pass->count - best_count < patience) {
        int i = pass->stale ? best_by_runs(pass, reach) : best_of_all(pass, reach);
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

static bool pass_new(struct pass *pass) {
    size_t n = (size_t)pass->graph->comm.n;
    bool thin = !pass->graph->comm.cells;
    pass->gain = malloc(n * sizeof *pass->gain);
    pass->sign = malloc(n * sizeof *pass->sign);
    pass->moved = malloc(n * sizeof *pass->moved);
    pass->top = thin ? malloc(2 * (n / RUN + 1) * sizeof *pass->top) : NULL;
    pass->stale = thin ? malloc((n / RUN + 1) * sizeof *pass->stale) : NULL;
    return pass->gain && pass->sign && pass->moved && (!thin || (pass->top && pass->stale));
}

double cut_refine(const struct bundles *graph, bool wide, int wanted, int slack, int passes, signed char *side) {
    struct pass pass = {.graph = graph, .side = side, .wanted = wanted, .cut = -1};
    if (pass_new(&pass)) {
        int heaviest = 1;
        for (int i = 0; i < graph->comm.n; i++) heaviest = graph->weight[i] > heaviest ? graph->weight[i] : heaviest;
        /* Wide passes may exchange whole branches; narrow ones end as near to what is wanted as can be. */
        for (int p = 0; wide && p < passes / 2; p++)
            if (!run_pass(&pass, slack, slack + WIDTH * heaviest)) break;
        for (int p = 0; p < passes; p++)
            if (!run_pass(&pass, slack, slack > heaviest ? slack : heaviest)) break;
        pass.cut = fmax(pass.cut, 0); /* rounding */
    }
    free(pass.gain);
    free(pass.sign);
    free(pass.moved);
    free(pass.top);
    free(pass.stale);
    return pass.cut;
}
