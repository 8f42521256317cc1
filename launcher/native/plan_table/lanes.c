/* Lanes: see plan_table.h. Threads may leave theirs at any time; what one makes is its own. */
#include "plan_table.h"

static struct pt_lane *lane_of(struct pt_lanes *made, struct pt_lane *lane, const struct pt_thread *plan) {
    if (lane->listed) return lane;
    lane->listed = true;
    lane->seat = plan;
    if (made->last) made->last->next = lane;
    else made->first = lane;
    return made->last = lane;
}

static struct pt_lane *free_lane(const struct pt_lanes *made) {
    struct pt_lane *lane = made->first;
    while (lane && atomic_load(&lane->living)) lane = lane->next;
    return lane;
}

struct pt_lane *pt_lane_take(struct pt_lanes *made, struct pt_lane *all, const struct pt_thread *plan) {
    if (plan && !plan->lane) return NULL;
    struct pt_lane *lane = plan ? lane_of(made, &all[plan->lane - 1], plan) : free_lane(made);
    if (lane) atomic_fetch_add(&lane->living, 1);
    return lane;
}

void pt_lane_leave(struct pt_lane *lane) {
    if (lane) atomic_fetch_sub(&lane->living, 1);
}
