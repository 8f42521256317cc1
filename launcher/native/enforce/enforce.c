/* The plan applied to what the preload library sees: each thread and each block is looked up when it is created. These
 * are the hooks that it calls (profiler/native/preload/hooks.h).
 */
#include "enforce.h"

#include "next_touch.h"

#include <stdlib.h>

struct nf_plan nf_plan;

static void start(void) {
    const char *path = getenv("NUMAPLAN_PLAN");
    if (!path) return;
    if (!pt_load(path, &nf_plan.table)) {
        np_wanted.log_bytes = NF_LOG_BYTES;
        np_log(NF_BAD_PLAN_TABLE, 0, 0, 0, 0, 0, 0);
        return;
    }
    uint32_t threads = nf_plan.table.header->threads;
    nf_plan.loaded = nf_regions_open() && nf_planned_open(threads) && nf_lanes_open(threads);
    if (!nf_plan.loaded) return;
    nf_find_process();
    nf_log_program();
    nf_affinity_start(&nf_plan.table, pt_find_thread(&nf_plan.table, 0, 0),
                      pt_first_thread(&nf_plan.table, nf_process_hash()));
}

/* A child is another process: what was placed and who lived there was its parent's. */
static void forked(void) {
    if (!nf_plan.loaded) return;
    nf_threads_forked();
    nf_regions_forked();
    nf_find_process();
}

/* What there is to say is said now; a tracer goes on with the threads, and later memory is the process's. */
static void sandbox_coming(void) {
    const uint32_t *nodes;
    if (!nf_plan.loaded) return;
    nf_threads_settle();
    nt_retire();
    nf_regions_look();
    uint32_t count = pt_memory_nodes(&nf_plan.table, nf_process_hash(), &nodes);
    if (count) pt_set_memory(nodes, count);
    atomic_store(&nf_plan.followed, nf_follow_from_outside());
    if (!atomic_load(&nf_plan.followed)) nf_free_all_threads();
    np_log(NF_RETIRED, np_thread_number(), atomic_load(&nf_plan.followed), 0, 0, 0, 0);
}

static void end(void) {
    if (!nf_plan.loaded) return;
    nf_threads_end();
    nf_regions_end();
    uint64_t marked = atomic_load(&nt_counts.marked);
    if (marked)
        np_log(NF_NEXT_TOUCHED, np_thread_number(), 0, marked, atomic_load(&nt_counts.touches),
               atomic_load(&nt_counts.moved), atomic_load(&nt_counts.stayed));
}

const struct np_hooks np_hooks = {
    .library = "enforce.so",
    .start = start,
    .forked = forked,
    .end = end,
    .sandbox_coming = sandbox_coming,
    .thread_coming = nf_thread_coming,
    .thread_made = nf_thread_made,
    .thread_born = nf_thread_born,
    .thread_ends = nf_thread_ends,
    .region_made = nf_region_made,
    .region_gone = nf_region_gone,
    .freeing = nt_freeing,
    .leaving = nt_leaving,
    .module_loaded = nf_module_loaded,
    .exec_room = nf_exec_room,
    .exec_change = nf_exec_change,
    .exec_leaves = nf_exec_leaves,
    .exec_over = nf_exec_over,
    .call = nf_affinity_call,
    .called = nf_affinity_called,
};
