/* Lanes (plan_table.h) of this process's threads: each knows those of what it makes, and its own. */
#include "enforce.h"

#include <stdlib.h>
#include <string.h>

static struct pt_lane *lanes; /* by the row of the first thread in each */
static uint32_t rows;

static NP_THREAD struct pt_lanes made; /* by the calling thread */
static NP_THREAD struct pt_lane *own; /* in which it is itself */

bool nf_lanes_open(uint32_t count) {
    lanes = calloc((size_t)count + 1, sizeof *lanes);
    rows = lanes ? count : 0;
    return lanes;
}

void nf_lanes_forked(void) {
    memset(lanes, 0, rows * sizeof *lanes);
    made = (struct pt_lanes){0};
    own = NULL;
}

/* Where a tracer goes on, that gives them their cpus. */
struct pt_lane *nf_lane_take(uint64_t path) {
    if (atomic_load(&nf_plan.followed)) return NULL;
    return pt_lane_take(&made, lanes, pt_find_thread(&nf_plan.table, nf_process_hash(), path));
}

void nf_lane_begin(struct pt_lane *lane) { own = lane; }

void nf_lane_end(void) {
    pt_lane_leave(own);
    own = NULL;
}

const struct pt_thread *nf_lane_seat(const struct pt_lane *lane) { return lane ? lane->seat : NULL; }
