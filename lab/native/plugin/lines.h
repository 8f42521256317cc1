/* The caches of the virtual machine's cpus: which accesses reach memory, and which take a line from another cpu. */
#ifndef NUMAPLAN_LAB_LINES_H
#define NUMAPLAN_LAB_LINES_H

#include "rows.h"

extern struct cache_core lab_lines_cores[VCPUS_MAX]; /* by vcpu; without an L1 before lab_lines_open */

void lab_lines_set_cpu(unsigned vcpu, unsigned cpu); /* its caches are to be those of this cpu */
bool lab_lines_open(unsigned vcpus);                 /* after the calibration; false: no memory, or a cpu unknown */
void lab_lines_switch(unsigned vcpu);                /* the vcpu's row is another */

/* At each counted access: one to this place in memory of the node. Whether its cpu's own caches did not answer it. */
static inline bool lab_lines_access(unsigned vcpu, uint64_t key, bool store, unsigned node) {
    struct cache_core *core = &lab_lines_cores[vcpu];
    uint64_t line = key >> LINE_SHIFT;
    if (!core->l1 || caches_hit(core, line, store)) return false;
    enum cache_level level = caches_miss(core, line, store);
    bool memory = level == LEVEL_LOCAL || level == LEVEL_REMOTE;
    lab_rows_current[vcpu]->lines->memory[node] += memory;
    return memory || level == LEVEL_REMOTE_CACHE;
}

#endif
