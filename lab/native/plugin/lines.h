/* The caches of the virtual machine's cpus: which accesses reach memory, and which take a line from another cpu. */
#ifndef NUMAPLAN_LAB_LINES_H
#define NUMAPLAN_LAB_LINES_H

#include "rows.h"

extern struct cache_core lab_lines_cores[VCPUS_MAX]; /* by vcpu; without an L1 before lab_lines_open */
extern struct reach_core lab_lines_reach[VCPUS_MAX];

void lab_lines_set_cpu(unsigned vcpu, unsigned cpu); /* its caches are to be those of this cpu */
bool lab_lines_open(unsigned vcpus);                 /* after the calibration; false: no memory, or a cpu unknown */
void lab_lines_switch(unsigned vcpu);                /* the vcpu's row is another */
/* The kernel copies a page to another place in memory: lines that another vcpu wrote are taken from its caches, and those
 * of the copy are in this one's. */
void lab_lines_copied(unsigned vcpu, uint64_t from, uint64_t to);

void lab_lines_cleared(uint64_t key); /* it clears this page, to give it to somebody */

uint64_t lab_lines_footprint(void); /* bytes of the pages that were ever touched */

struct lab_answer {
    enum cache_level level;
    bool missed; /* its L1 */
    bool asked; /* that, or a store to a line that the cpu did not own */
    bool kept; /* the L3 has what other cpus' own caches had of the line (caches.h) */
    struct reach reach; /* how large a last-level cache it takes */
};

/* The kernel copies for the task that runs, to this place (store) or from it. */
struct lab_answer lab_lines_buffer(unsigned vcpu, uint64_t key, bool store);

/* At each counted access: one to this place in memory of the node. Unknown before lab_lines_open. */
static inline struct lab_answer lab_lines_access(unsigned vcpu, uint64_t key, bool store, unsigned node) {
    struct cache_core *core = &lab_lines_cores[vcpu];
    uint64_t line = key >> LINE_SHIFT;
    struct lab_answer answer = {.level = LEVEL_UNKNOWN};
    if (!core->l1) return answer;
    answer.level = LEVEL_L1;
    if (caches_hit(core, line, store)) return answer;
    uint64_t before = core->counts->l1_misses;
    answer.level = reach_miss(&lab_lines_reach[vcpu], core, line, store, &answer.reach);
    answer.missed = core->counts->l1_misses != before;
    answer.asked = answer.missed || store;
    answer.kept = core->kept;
    lab_rows_current[vcpu]->lines->memory[node] += answer.level == LEVEL_LOCAL || answer.level == LEVEL_REMOTE;
    return answer;
}

/* Whether the cpu's L1 answers by its most recent lines. */
static inline bool lab_lines_has(unsigned vcpu, uint64_t line, bool store) {
    return lab_lines_cores[vcpu].l1 && caches_hit(&lab_lines_cores[vcpu], line, store);
}

/* Whether it stayed in the caches of the cpu's node. */
static inline bool lab_lines_inside(enum cache_level level) { return level != LEVEL_UNKNOWN && level < LEVEL_LOCAL; }

#endif
