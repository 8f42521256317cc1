/* Communication counted in blocks of memory that are as large as their use allows.
 *
 * Few samples of one cache line meet, so events are counted over blocks; but one size does not suit memory that is
 * sampled a thousand times and memory that is sampled once. Here a block begins as a root of 2^ROOT_SHIFT bytes and is
 * halved as long as more than `budget` of its samples are by others than the thread that touches it most, down to a
 * cache line. So all leaves tell about equally much, wherever they lie. */
#ifndef NUMAPLAN_LEAVES_H
#define NUMAPLAN_LEAVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ROOT_SHIFT = 20, LINE_SHIFT = 6, MAX_BUDGETS = 8, MOST_BUDGET = 1024, MAX_SAMPLES = 1 << 24 };

/* The samples, in order of time; `first`: how many came before them; `raised`: bytes, of whole lines, that are added to
 * their addresses, so that blocks begin elsewhere (beyond the last one at 0, with nothing else there). */
struct comm_samples {
    size_t count;
    uint64_t first, raised;
    const uint64_t *addr;
    const uint16_t *thread;
    const uint8_t *is_write;
};

/* What to count and where to: each budgets x groups x threads x threads, added to.
 * events [writer][reader]: a thread touches a leaf that another one wrote, and has not been there since; grouped by
 * time, in turns of event_window samples; NULL: not wanted. transfers [lower thread][higher thread]: how many lines are thought to have
 * passed between the two (leaves.c), grouped by leaf; pair_window: samples of one stretch of time.
 * budget: ascending, at most MOST_BUDGET. weight: what an event counts whose sample is a load, and a store, as one of
 * them may be sampled less often. */
struct comm_layers {
    uint32_t threads, groups, budgets;
    uint32_t budget[MAX_BUDGETS], weight[2];
    uint64_t event_window, pair_window;
    uint32_t *events;
    double *transfers;
};

/* Samples brought together by root, in order of time within each: order[start[r]] to order[start[r + 1] - 1]. */
struct comm_roots {
    size_t count;
    uint32_t *start, *order;
};

static inline uint64_t comm_place_of(const struct comm_samples *samples, size_t i) {
    return samples->addr[i] + samples->raised;
}

bool comm_roots_find(struct comm_roots *roots, const struct comm_samples *samples);
void comm_roots_free(struct comm_roots *roots);

int comm_leaves_count(const struct comm_layers *layers, const struct comm_samples *samples);

#endif
