/* Seats through time (lanes): of the threads that one makes, those share one that do not live at the same time. One that
 * the plan does not name follows planned ones that have ended: it has the cpus of the first lane in which nobody lives.
 */
#include "enforce.h"

#include <stdlib.h>

struct nf_lane {
    const struct pt_thread *seat;
    struct nf_lane *next; /* of the same creator, in the order in which they began */
    bool listed; /* there */
    _Atomic uint32_t living; /* in it, or being made */
};

static struct nf_lane *lanes; /* by the row of the first thread in each */
static uint32_t rows;

static NP_THREAD struct nf_lane *first, *last; /* of what the calling thread makes */
static NP_THREAD struct nf_lane *own; /* in which it is itself */

bool nf_lanes_open(uint32_t count) {
    lanes = calloc((size_t)count + 1, sizeof *lanes);
    rows = lanes ? count : 0;
    return lanes;
}

void nf_lanes_forked(void) {
    for (uint32_t i = 0; i < rows; i++) lanes[i] = (struct nf_lane){0};
    first = last = own = NULL;
}

static struct nf_lane *lane_of(const struct pt_thread *plan) {
    struct nf_lane *lane = &lanes[plan->lane - 1];
    if (lane->listed) return lane;
    lane->listed = true;
    lane->seat = plan;
    if (last) last->next = lane;
    else first = lane;
    return last = lane;
}

static struct nf_lane *free_lane(void) {
    struct nf_lane *lane = first;
    while (lane && atomic_load(&lane->living)) lane = lane->next;
    return lane;
}

/* Where a tracer goes on, that gives them their cpus. */
struct nf_lane *nf_lane_take(uint64_t path) {
    const struct pt_thread *plan = pt_find_thread(&nf_plan.table, nf_process_hash(), path);
    if (atomic_load(&nf_plan.followed) || (plan && !plan->lane)) return NULL;
    struct nf_lane *lane = plan ? lane_of(plan) : free_lane();
    if (lane) atomic_fetch_add(&lane->living, 1);
    return lane;
}

void nf_lane_begin(struct nf_lane *lane) { own = lane; }

void nf_lane_leave(struct nf_lane *lane) {
    if (lane) atomic_fetch_sub(&lane->living, 1);
}

void nf_lane_end(void) {
    nf_lane_leave(own);
    own = NULL;
}

const struct pt_thread *nf_lane_seat(const struct nf_lane *lane) { return lane ? lane->seat : NULL; }
