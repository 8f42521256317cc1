/* processes.c: which process of its job this is, in the control file that all processes of the job map. It needs nothing
 * else of this folder but status.c: what /proc says of it.
 */
#ifndef NUMAPLAN_PROCESSES_H
#define NUMAPLAN_PROCESSES_H

#include "names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#pragma GCC visibility push(hidden)

enum { NP_PATH = 4096 };

struct np_entry { /* one process, 64 bytes */
    _Atomic uint32_t pid;
    uint32_t parent; /* entry number + 1, 0 for the first */
    uint32_t number; /* which child of its parent, from 1 */
    uint32_t rank; /* MPI rank + 1 where the name starts with it, else 0 */
    _Atomic uint32_t children;
    uint32_t in_job; /* a rank stands above it */
    uint64_t hash; /* of the name */
    uint64_t start_ns;
    _Atomic uint64_t end_ns;
    uint32_t parent_image; /* log of the parent at the time of fork, 0 for a child that was born by exec */
    _Atomic uint32_t program; /* np_played: what it runs in its part, 0: nothing that others need to know of */
    _Atomic uint64_t plays; /* hash of the plan's process whose part it has, 0: of its own name */
};
_Static_assert(sizeof(struct np_entry) == 64, "the reader relies on it");

extern const char *np_directory;
const char *np_env(const char *name); /* NULL: not set */
bool np_processes_open(void);
/* Of any job, by somebody else; NULL: there is none. */
struct np_entry *np_process_at(const char *folder, uint32_t number);
struct np_entry *np_process(void);
struct np_entry *np_process_parent(const struct np_entry *entry); /* NULL: the first of its job */
bool np_filtered_at_start(void); /* system calls were restricted, or nobody knows */
uint32_t np_process_entry(void);
struct np_process_name {
    const struct np_entry *parent; /* NULL: the first of its job */
    uint64_t hash;
    uint32_t number;
    bool ranked; /* a rank, which no other process stands for */
};
struct np_process_name np_process_name_of(const struct np_entry *entry);
/* Of who runs what is started with this environment: this process, or its next child, if this is a child of vfork, or
 * spawns. false: nobody knows, or it will have none. A child has its number when it adds itself to the control file: this
 * is the one that it will have if those before it come in order.
 */
bool np_process_after_exec(char *const *environment, bool spawns, struct np_process_name *name);
/* What others see of a process in a part: a hash of its program, and whether it may run that for a moment only. */
static inline uint32_t np_played(uint64_t program_hash, bool for_now) {
    return ((uint32_t)program_hash & ~1u) | (uint32_t)for_now;
}
/* These need np_process(). Whether a process of the job, other than this one, that lives has this part and runs this
 * program; sure: not only for now. */
bool np_is_played(uint64_t part, uint64_t program_hash, bool sure, const struct np_entry *but);
/* No two processes take a part because nobody had it: who chooses asks how many choices there were, looks who has what,
 * and chooses. false: somebody else chose in between, so it is better done again. Nobody waits for one that was killed.
 */
uint32_t np_choices(void);
bool np_choose(uint64_t part, uint32_t played, uint32_t choices);
void np_choose_unseen(uint64_t part, uint32_t played); /* without having looked */
uint32_t np_next_image(void);
uint64_t np_fork_time(void);
uint32_t np_inherited_image(void); /* log whose regions this image began with, 0: none */
void np_fork_prepare(void);
void np_fork_child(uint32_t image); /* the number of the parent's log, 0: it had none */
void np_process_end(void);

static inline uint64_t np_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- status.c ---- */

/* How many filters of system calls hold for this thread. They stay at exec: a program may be started under more than its
 * parent was.
 */
uint32_t np_call_filters(void);
/* The process that `starter` (by perf, maybe) has started and that this one descends from; 0: none. */
uint32_t np_started_by(uint32_t starter);

#pragma GCC visibility pop
#endif
