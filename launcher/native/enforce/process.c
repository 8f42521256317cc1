/* Which process of the plan this one is, and what the plan says of it. */
#include "enforce.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { PROGRAM_BYTES = 16, MOST_CHOICES = 100 };

/* By who runs the part's program: not by a shell that waits for it. A process's own part may be had for now by one that
 * was forked, whose number ran something else: that goes when it becomes this.
 */
static bool is_taken(const struct pt_process *part, const struct pt_process *by) {
    const struct np_entry *own = np_process();
    bool is_own = by->process == own->hash; /* not that of a child which is about to come */
    return np_is_played(part->process, part->program, part->process == by->process, is_own ? own : NULL);
}

/* Of what a process that we are in, or that we are about to become or to make, runs. */
static uint64_t played(const struct np_process_name *name, uint64_t program) {
    if (!name->parent) return name->hash;
    uint64_t above = atomic_load(&name->parent->plays);
    struct pt_process actual = {.process = name->hash,
                                .parent = above ? above : name->parent->hash,
                                .program = program,
                                .number = name->number};
    return pt_plays(&nf_plan.table, &actual, is_taken);
}

/* Where others choose all the time, two may get one part. A rank has its own, and so has who may not ask who lives. */
static void take_part(const struct np_entry *own, uint64_t program, bool forked) {
    const struct pt_process *usual = pt_find_process(&nf_plan.table, own->hash);
    uint32_t seen = np_played(program, forked && usual && usual->program != program);
    if (own->rank || !np_may_call()) {
        np_choose_unseen(0, seen);
        return;
    }
    struct np_process_name name = np_process_name_of(own);
    for (int tries = 0; tries < MOST_CHOICES; tries++) {
        uint32_t choices = np_choices();
        if (np_choose(played(&name, program), seen, choices)) return;
    }
}

/* Of this process in the plan. No process there hashes to 0; one for which the control file had no room is in no plan.
 * It takes its part when it is first asked, after exec and in a forked child: that runs what its parent runs. Programs
 * go by the name that the kernel has of them, which is cut.
 */
uint64_t nf_process_hash(void) {
    static char program[PROGRAM_BYTES];
    static const struct np_entry *known;
    struct np_entry *own = np_process();
    if (!own) return 0;
    if (!*program) prctl(PR_GET_NAME, program, 0, 0, 0);
    if (own != known) {
        take_part(own, pt_hash(program), known != NULL);
        known = own;
    }
    uint64_t plays = atomic_load_explicit(&own->plays, memory_order_relaxed);
    return plays ? plays : own->hash;
}

/* What this process becomes runs elsewhere. A child of vfork is not in the control file yet. */
void nf_leave_part(void) {
    struct np_entry *own = np_process();
    if (own && atomic_load(&own->pid) == (uint32_t)getpid()) atomic_store(&own->program, 0);
}

const uint32_t *nf_cpus_after_exec(const struct np_exec *call, uint32_t *count) {
    struct np_process_name name;
    *count = 0;
    if (!nf_plan.loaded || access(call->path, X_OK)) return NULL; /* it may point to nowhere */
    if (call->spawns && call->path[0] != '/') return NULL; /* from another folder it may be another program */
    const char *slash = strrchr(call->path, '/');
    if (np_only_carries(slash ? slash + 1 : call->path)) return NULL;
    if (!np_process_after_exec(call->envp, call->spawns, &name)) return NULL;
    uint64_t process =
        name.ranked ? name.hash : played(&name, pt_hash_program(call->path)); /* it is taken after exec */
    /* It tells its program the cpus of those that the plan does not name: where it has none, it cannot. */
    const struct pt_thread *plan =
        pt_find_thread(&nf_plan.table, 0, 0) ? pt_first_thread(&nf_plan.table, process) : NULL;
    *count = plan ? plan->cpus : 0;
    return plan ? &nf_plan.table.cpus[plan->first_cpu] : NULL;
}

/* What the plan says of this process; one that it does not name needs no log, and its pages are the kernel's to move. */
void nf_find_process(void) {
    bool threads_here = false, memory_here = false;
    nf_plan.next_touch_here = false;
    for (uint32_t i = 0; i < nf_plan.table.header->threads && !threads_here; i++)
        threads_here = nf_plan.table.threads[i].path && nf_plan.table.threads[i].process == nf_process_hash();
    for (uint32_t i = 0; i < nf_plan.table.header->regions; i++) {
        if (nf_plan.table.regions[i].process != nf_process_hash()) continue;
        memory_here = true;
        nf_plan.next_touch_here = nf_plan.next_touch_here || nf_plan.table.regions[i].policy == PT_NEXT_TOUCH;
    }
    np_wanted = (struct np_wanted){.log_bytes = threads_here || memory_here ? NF_LOG_BYTES : 0, .regions = memory_here};
    nf_may_balance(nf_plan.table.header->autonuma || (!threads_here && !memory_here));
}

/* What a plan is for may be started by a script or by mpirun: only here it is known what runs. */
void nf_log_program(void) {
    char path[NP_PATH];
    ssize_t length = np_wanted.log_bytes ? readlink("/proc/self/exe", path, sizeof path) : 0;
    if (length > 0) np_log_text(&(struct np_record){.kind = NF_PROGRAM}, path, (size_t)length);
}
