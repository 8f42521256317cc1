/* A plan as a table of fixed-size rows, written by launcher/enforce/plan_table.py, read by enforce.so and by the tracer. */
#ifndef NUMAPLAN_PLAN_TABLE_H
#define NUMAPLAN_PLAN_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct pt_header {
    char magic[8]; /* NUMAPLPF */
    uint32_t version, threads, cpus, regions, runs, nodes;
    uint64_t bytes; /* of the whole file */
    uint32_t rules; /* the last of the regions */
    uint32_t autonuma; /* 1: the kernel may move what is left to first touch */
    uint32_t processes; /* that others may stand for */
    uint32_t spares[3];
};
_Static_assert(sizeof(struct pt_header) == 64, "the writer relies on it");

struct
    pt_thread { /* ascending by process, path; path 0: threads that the plan does not name; pools: `pool 1` and so on */
    uint64_t process, path;
    uint32_t first_cpu, cpus;
    int32_t node; /* -1: leave the stack alone */
    uint32_t memory; /* of a main thread: 1 + where `cpus` has how many nodes, and these; 0: none (pt_memory_nodes) */
    uint32_t pool; /* 1 + the row with the cpus for what it makes and the plan does not name; 0: as for others */
    uint32_t lane; /* 1 + the first row on the same seat through time, that others may follow on; 0: none */
};
_Static_assert(sizeof(struct pt_thread) == 40, "the writer relies on it");

enum pt_kind { PT_HEAP = 1, PT_MMAP, PT_FILE, PT_STATIC };
enum pt_policy { PT_BIND = 1, PT_PREFERRED, PT_INTERLEAVE, PT_NEXT_TOUCH };

struct
    pt_region { /* ascending by process, thread, sequence; then rules, by process, thread, module, offset, kind, least */
    uint64_t process, thread; /* hashes; thread 0 for static data */
    uint64_t module, offset; /* hash of the basename; call site, or address of static data in the file */
    uint64_t bytes, build_id; /* bytes: what the runs are for; build_id: first 8 bytes, 0: any */
    uint32_t first_run, runs;
    uint32_t sequence;
    uint16_t kind;
    uint8_t policy;
    uint8_t scales; /* 1: the runs are shares of it, whatever its size */
};
_Static_assert(sizeof(struct pt_region) == 64, "the writer relies on it");

struct pt_run {
    uint64_t offset, bytes;
    uint32_t node, spare;
};
_Static_assert(sizeof(struct pt_run) == 24, "the writer relies on it");

enum { PT_MAX_NODE = 1023, PT_MAX_CPU = 8191, PT_MASK = (PT_MAX_CPU + 1) / 8 };

struct pt_sizes { /* of the blocks that a rule is for; those of one place do not overlap */
    uint64_t least, most;
};
_Static_assert(sizeof(struct pt_sizes) == 16, "the writer relies on it");

struct pt_process { /* a child process of the plan, and what it ran */
    uint64_t process, parent, program; /* hashes; program: of its name as the kernel has it */
    uint32_t number; /* which child of its parent, from 1 */
    uint32_t parent_row; /* 1 + the row of its parent, 0: that has none */
};
_Static_assert(sizeof(struct pt_process) == 32, "the writer relies on it");

struct pt_table {
    const struct pt_header *header;
    const struct pt_thread *threads;
    const struct pt_region *regions;
    const struct pt_run *runs;
    const struct pt_sizes *sizes; /* of each rule */
    const struct pt_process *processes;
    const uint32_t *cpus;
};

/* Every count and index is checked once, here: nothing later can leave the table. */
bool pt_check(const void *memory, size_t bytes, struct pt_table *table);
/* FNV-1a: how the table knows processes, creation paths and modules by name. */
uint64_t pt_hash(const char *name);
uint64_t pt_hash_program(const char *path); /* of its name as the kernel will have it, which is cut */
bool pt_load(const char *path, struct pt_table *table);
const struct pt_thread *pt_find_thread(const struct pt_table *table, uint64_t process, uint64_t path);
const struct pt_thread *pt_first_thread(const struct pt_table *table, uint64_t process);
/* A child process of the plan, NULL: it has none of this name that tells what it ran. */
const struct pt_process *pt_find_process(const struct pt_table *table, uint64_t process);
typedef bool pt_taken(const struct pt_process *part, const struct pt_process *actual);
/* Whose part in the plan a process has. Children are numbered by chance where a script waits for a server or a client
 * comes later: one that does not run what its number ran has the part of the child of `parent` nearest in number that
 * did, if there is one. Beyond the last of these, children go on in turn where the last ones have their cpus in turn.
 * Where that part is taken (by another process, now), it has the nearest of these that is not.
 *
 * A shell runs its last command in its own place or in a child, as it likes. So where no child of `parent` ran this, it
 * has, in the same way, the part of a child of one of these, or else that of `parent`, unless that is taken.
 */
uint64_t pt_plays(const struct pt_table *table, const struct pt_process *actual, pt_taken *taken);
/* What a thread gets that the plan does not name: what its process, or else any process, says of such. */
const struct pt_thread *pt_find_unplanned(const struct pt_table *table, uint64_t process);
/* Among which nodes all memory of a process belongs into which nothing can be loaded; how many, 0: first touch. */
uint32_t pt_memory_nodes(const struct pt_table *table, uint64_t process, const uint32_t **nodes);
/* Memory of the process as a whole, where it is not placed piece by piece; what threads are made now has it, too. */
void pt_set_memory(const uint32_t *nodes, uint32_t count);
/* From one policy of the process to another, neither of which names nodes; false: it has another than that. */
bool pt_change_policy(int from, int to);
void pt_fill_mask(const uint32_t *cpus, uint32_t count, unsigned char mask[PT_MASK]); /* for the kernel */
const struct pt_region *pt_find_region(const struct pt_table *table, uint64_t process, uint64_t thread,
                                       uint32_t sequence);
/* The first rule, and where its number in the plan stands among those of all regions. */
static inline uint32_t pt_first_rule(const struct pt_table *table) {
    return table->header->regions - table->header->rules;
}
/* The rule for a block that has no row of its own. */
const struct pt_region *pt_find_rule(const struct pt_table *table, const struct pt_region *block);
/* Where an offset in a region of the plan is in a block of `bytes`: of a rule and of what scales,
 * runs are cut in proportion.
 */
uint64_t pt_offset_in(const struct pt_table *table, const struct pt_region *region, uint64_t offset, uint64_t bytes);

/* ---- lanes.c ----
 *
 * Seats through time (lanes): of the threads that one makes, those share one that do not live at the same time. One that
 * the plan does not name follows planned ones that have ended: it has the cpus of the first lane in which nobody lives.
 */

struct pt_lane { /* zero: nobody was in it yet */
    const struct pt_thread *seat;
    struct pt_lane *next; /* of the same creator, in the order in which they began */
    bool listed; /* there */
    _Atomic uint32_t living; /* in it, or being made */
};

struct pt_lanes { /* of what one thread makes */
    struct pt_lane *first, *last;
};

/* For one that it is about to make; plan: what the plan says of that, NULL: nothing; all: a lane for each row of threads.
 * NULL: it has none, and follows nobody.
 */
struct pt_lane *pt_lane_take(struct pt_lanes *made, struct pt_lane *all, const struct pt_thread *plan);
void pt_lane_leave(struct pt_lane *lane); /* NULL: it had none */

#pragma GCC visibility pop
#endif
