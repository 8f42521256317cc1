/* What enforce.so does with a plan: bind threads at birth, place memory before it is touched, verify both. */
#ifndef NUMAPLAN_ENFORCE_H
#define NUMAPLAN_ENFORCE_H

#include "plan_table.h"
#include "preload.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#pragma GCC visibility push(hidden)

/* ---- records ---- */

enum {
    NF_APPLIED_THREAD =
        NP_OTHERS, /* a: errno of binding, b: hash of the path, c: enum nf_named, d: 0 at birth, 1 later;
                                      text: its cpus, a bit each */
    NF_APPLIED_REGION,             /* a: errno, b: number in the plan, c: address, d: bytes */
    NF_REGION_PAGES, /* a: node of the plan << 16 | node found (0xffff: never touched), b: number, c: bytes,
                                       d: 1 where the first had no room */
    NF_BAD_PLAN_TABLE,
    NF_NEXT_TOUCHED, /* b: bytes marked, c: pieces touched, d: pages moved, e: pages that could not be */
    NF_RULE_BLOCKS, /* a: errno of binding, b: number in the plan, c: blocks that the rule has placed, d: bytes of these */
    NF_MEMORY, /* b: bytes of the large blocks, mappings and static data so far, c: of those in the plan */
    NF_PROGRAM, /* text: the file that runs */
    NF_RETIRED, /* system calls are restricted from now on; a: 1 a tracer goes on for us, 0 nobody does */
};

enum { NF_LOG_BYTES = 32 << 20 };

/* ---- enforce.c ---- */

extern struct nf_plan {
    struct pt_table table;
    bool loaded;
    bool next_touch_here; /* there is memory of this process that goes to who touches it next */
    _Atomic bool followed; /* by a tracer, since this process restricts its system calls */
} nf_plan;

/* ---- policy.c ---- */

enum nf_how {
    NF_STRICT = 1 /* nowhere else, as long as the node has room */,
    NF_MOVE = 2 /* pages that are there, too */
};

/* Whole pages to a node. errno. */
int nf_set_node(uintptr_t start, uintptr_t end, uint32_t node, unsigned how);
bool nf_lacks_room(uint32_t node); /* now, or when something was to be bound to it */
void nf_reset_policy(uintptr_t start, uintptr_t end); /* to first touch */
/* In equal parts over the nodes of the runs, or in proportion to the runs' bytes. */
int nf_interleave(uintptr_t start, uintptr_t end, const struct pt_run *runs, uint32_t count, unsigned how);
void nf_move_stack(uintptr_t top, int node);
void nf_move_storage(int node);
void nf_may_balance(bool may); /* whether the kernel may move what this process has without a policy (AutoNUMA) */
void nf_balance_after_exec(bool may); /* the same of what the calling thread starts; false: it did not */
/* Where a run that begins or ends there does: at a page, or at a huge page where runs are large. */
uintptr_t nf_border(uintptr_t address, size_t bytes, uint32_t runs);

/* ---- place.c ---- */

int nf_place(const struct pt_table *table, const struct pt_region *region, uintptr_t address, size_t bytes);
/* A block of a rule: as cheap as can be, since they may come often. */
int nf_place_block(const struct pt_table *table, const struct pt_region *rule, uintptr_t address, size_t bytes);
void nf_place_stack(uintptr_t address, size_t bytes, int node);
void nf_unplace(uintptr_t address, size_t bytes);
void nf_verify(const struct pt_table *table, const struct pt_region *region, uintptr_t address, size_t bytes);
void nf_looks_forked(void);

/* ---- blocks.c: blocks that rules have placed, by the rule's number in the plan ---- */

bool nf_blocks_open(uint32_t rules);
void nf_blocks_forked(uint32_t rules);
bool nf_block_add(uintptr_t address, size_t bytes, uint32_t number); /* false: too many live */
bool nf_block_take(uintptr_t address, size_t *bytes, uint32_t *number); /* it goes; false: it is none */
bool nf_block_take_any(uintptr_t *address, size_t *bytes, uint32_t *number);
/* rule: its place among the rules */
void nf_block_placed(uint32_t rule, uint32_t number, size_t bytes, int error);
bool nf_block_is_looked_at(uint32_t rule); /* whether this one, which goes, is */
void nf_count_memory(size_t bytes, bool planned);
void nf_blocks_end(uint32_t rules, uint32_t first_number); /* log what there is to say */

/* ---- affinity.c ---- */

/* all: what the process would have without us; own: what its first thread is given before it becomes this program. NULL
 * where the plan does not say.
 */
void nf_affinity_start(const struct pt_table *table, const struct pt_thread *all, const struct pt_thread *own);
/* Bind the calling thread; returns errno. Only a planned thread is told another mask. */
int nf_bind(const uint32_t *cpus, uint32_t count, bool planned);
/* A thread that the calling one has made and that does not run yet; false: it could not be done. */
bool nf_bind_made(pid_t tid, const uint32_t *cpus, uint32_t count);
/* Give the calling thread the mask that it would have without us, or these cpus, for what it starts; false: its mask is
 * its own wish.
 */
bool nf_unbind(const uint32_t *cpus, uint32_t count, unsigned char before[PT_MASK]);
void nf_bind_again(unsigned char before[PT_MASK]);
/* Its creator or a tracer has done that for the calling thread. */
void nf_bound_from_outside(const uint32_t *cpus, uint32_t count, bool planned);
/* Whether the calling thread was made on cpus of its own, which it then keeps; those: what it would have by the plan. */
bool nf_keeps_own(const uint32_t *cpus, uint32_t count, bool planned);
void nf_free_all_threads(void); /* to run where they would without us */
enum nf_named { NF_UNPLANNED, NF_PLANNED, NF_FOLLOWS /* the plan does not name it, but whose seat it has */ };

void nf_log_affinity(uint32_t thread, uint64_t path, int error, enum nf_named named, bool later, pid_t tid);

/* What the program asks for by syscall(). */
bool nf_affinity_call(long number, const long arguments[6], long *result);
void nf_affinity_called(long number, const long arguments[6], long result);

/* Planned threads of this process that live, by their number in the plan. */
bool nf_planned_open(uint32_t count);
void nf_planned_started(uint32_t number, uint32_t thread, pid_t tid);
void nf_planned_ended(uint32_t number);
pid_t nf_planned_take(uint32_t number, uint32_t *thread); /* 0: it does not live; it is not looked after any more */
void nf_planned_forked(void);

/* ---- lanes.c: threads that follow one another on the cpus of a planned one ---- */

bool nf_lanes_open(uint32_t count); /* of planned threads */
void nf_lanes_forked(void);
/* For one that the calling thread is about to make, by its path; NULL: it has none, and follows nobody. */
struct pt_lane *nf_lane_take(uint64_t path);
void nf_lane_begin(struct pt_lane *lane); /* the calling thread is in it; NULL: in none */
void nf_lane_end(void); /* the calling thread leaves its own */
const struct pt_thread *nf_lane_seat(const struct pt_lane *lane);

/* ---- process.c ---- */

uint64_t nf_process_hash(void); /* of this process in the plan */
void nf_find_process(void); /* what the plan has for this process */
void nf_log_program(void);
void nf_leave_part(void); /* it becomes a program that nobody binds */
/* What the first thread of the program gets that this process becomes; count: none where the plan does not name it. */
const uint32_t *nf_cpus_after_exec(const struct np_exec *call, uint32_t *count);

/* ---- threads.c ---- */

void nf_thread_coming(int change);
bool nf_thread_made(uint32_t number, uint64_t path, pthread_t thread);
void nf_thread_born(uint32_t number, uint64_t path, uintptr_t stack, size_t stack_bytes, bool bound);
void nf_thread_ends(uint32_t number, uint64_t path);
void nf_threads_forked(void);
void nf_threads_settle(void); /* wait until those that are being made are there */
void nf_threads_end(void); /* log the cpus of those that live */

/* ---- memory.c ---- */

bool nf_regions_open(void);
void nf_regions_forked(void);
bool nf_region_made(enum np_region kind, uintptr_t address, size_t bytes, uintptr_t site, uint32_t sequence);
void nf_region_gone(enum np_region kind, uintptr_t address, size_t unmapped);
void nf_module_loaded(const struct np_module *module);
void nf_regions_shared(void); /* next touch: others come to use this process's memory */
void nf_regions_look(void); /* log where the pages of placed ones are */
void nf_regions_end(void); /* the same, for the last time */

/* ---- outside.c ---- */

bool nf_follow_from_outside(void); /* have a tracer bind what this process has yet to make */
size_t nf_exec_room(struct np_exec *call);
void nf_exec_change(struct np_exec *call, void *room);
bool nf_exec_leaves(struct np_exec *call);
void nf_exec_over(struct np_exec *call);

#pragma GCC visibility pop
#endif
