/* The counters: one row for each pair of a vcpu and a task that ran on it, one column a node. */
#ifndef NUMAPLAN_LAB_ROWS_H
#define NUMAPLAN_LAB_ROWS_H

#include "caches.h"
#include "nodes.h"
#include "reach.h"

#include <stdio.h>

#define VCPUS_MAX 256

/* What left the caches, where these are modelled. */
struct lab_lines {
    struct cache_counts counts;
    uint64_t shared_hits; /* of a recording: as those of the emulation (profiler/native/emulate/emulate.h) */
    uint64_t past[2][REACH_SIZES];  /* last-level caches of several sizes, if they are asked for */
    uint64_t memory[NODES_MAX + 1]; /* accesses that no cache answered */
    uint64_t moved[VCPUS_MAX];      /* lines that another vcpu's caches lost to this one's */
    uint64_t waited; /* accesses that other tasks made while this one waited for the vcpu (sharing.h) */
};

#define LOOKS_MOST 16 /* accesses from one wait to the next, up to which a loop only looks */

/* What a task accessed since it last said that it waits; more than there is room for: it works. */
struct lab_looks {
    unsigned seen;
    uint8_t node[LOOKS_MOST];
};

struct lab_row {
    uint64_t task; /* the guest kernel's address of the task: opaque, unique among living tasks */
    uint64_t accesses[NODES_MAX + 1];
    uint64_t polls[NODES_MAX + 1]; /* those of them that only waited (polls.h) */
    struct lab_looks looks;
    uint64_t loads, stores;  /* of a recording (recording.h) */
    struct lab_lines *lines; /* NULL without caches */
};

/* The row that each vcpu counts into now. Only that vcpu's thread writes it, so counting needs no lock. */
extern struct lab_row *lab_rows_current[VCPUS_MAX];

bool lab_rows_open(unsigned vcpus, bool lines); /* false: no memory */
void lab_rows_switch(unsigned vcpu, uint64_t task); /* the vcpu goes on with another task */
void lab_rows_set_cpu(unsigned vcpu, unsigned cpu); /* the guest kernel's number of a vcpu */
void lab_rows_end_stage(unsigned vcpu); /* the task on the vcpu ends, or becomes another program */
void lab_rows_reset(void);
void lab_rows_exclude(uint64_t task);
bool lab_rows_excluded(uint64_t task);
void lab_rows_write(FILE *file);

#endif
