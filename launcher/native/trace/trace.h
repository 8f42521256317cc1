/* The tracer: binds the threads of programs that nothing can be loaded into (static, privileged, Go), from outside.
 *
 * It attaches to the program before its exec and is told by the kernel of every thread and process made. Each gets
 * the name that the preload library would give it, and its cpus while it is stopped before its first instruction.
 * When the tracer dies, the kernel lets the program go on.
 */
#ifndef NUMAPLAN_TRACE_H
#define NUMAPLAN_TRACE_H

#include "plan_table.h"
#include "told_cpus.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum { TR_PATH = 4096 }; /* characters of a creation path; deeper threads are not named */

struct tr_process {
    pid_t pid;
    char *name; /* p0, p0.1, r3 … */
    uint64_t hash;
    uint32_t children; /* processes made so far */
    uint32_t tasks;    /* of which the tracer knows */
    uint32_t watched;  /* system calls of the main thread that are still looked at: see affinity.c */
    bool started;      /* has exec'd, or was forked: not our own child that is about to exec */
};

enum tr_named { TR_UNPLANNED, TR_PLANNED, TR_FOLLOWS /* the plan does not name it, but whose seat it has */ };

struct tr_task {
    pid_t tid;
    struct tr_process *process; /* NULL: stopped at birth before its creator's event told who it is */
    char *path;              /* NULL: too deep */
    uint32_t children;       /* threads made so far */
    bool waiting;
    bool nameless;     /* its creator was killed before it told */
    time_t since;      /* waiting: in seconds */
    struct told_question question; /* that it asks in sched_getaffinity */
    bool wishes;                   /* it is in sched_setaffinity */
    bool own;                      /* its cpus are those that it asked for */
    enum tr_named named;
    const struct pt_thread *seat; /* NULL: the plan has none for it */
    struct pt_lane *lane; /* in which it is */
    struct pt_lanes made; /* of what it makes */
    struct tr_task *next; /* in its bucket */
};

/* ---- tasks.c ---- */

struct tr_task *tr_find(pid_t tid);
struct tr_task *tr_add(pid_t tid);
void tr_remove(struct tr_task *task);
void tr_each(void (*visit)(struct tr_task *task));
struct tr_process *tr_new_process(pid_t pid, const char *name);
/* The new thread or process belongs here from now on; path is copied. */
void tr_join(struct tr_task *task, struct tr_process *process, const char *path);
/* After exec: one thread is left, which is the main thread now. */
void tr_exec_thread(struct tr_process *process, struct tr_task *task, pid_t former);

/* ---- bind.c ---- */

bool tr_bind_open(const char *table, const char *folder, bool hold);
/* What the plan says of it; creator: who has just made it, NULL: it is the first thread of a process, or came earlier. */
void tr_know(struct tr_task *task, struct tr_task *creator);
void tr_bind(struct tr_task *task); /* where that is */
void tr_leave_lanes(const struct tr_process *process); /* all of what ran in it until now */
void tr_bind_again(struct tr_task *task); /* where the plan holds against the program's own wish */
bool tr_keeps_plan(struct tr_task *task); /* where the program has just set its cpus; false: it keeps those */
void tr_bound_end(struct tr_task *task);

/* ---- affinity.c ---- */

void tr_watch_calls(struct tr_process *process);
void tr_answer_affinity(struct tr_task *task);

/* ---- follow.c ---- */

bool tr_attach(pid_t tid);
bool tr_seize(pid_t pid, const char *name);
void tr_follow(void);

/* ---- resume.c ---- */

bool tr_resume(pid_t pid, const char *name, uint32_t children, const char *log);

/* ---- attach.c ---- */

/* log: of the library, that looked after it until now and had it make so many children; NULL: none did. */
struct tr_target {
    pid_t pid;
    const char *name, *log;
    uint32_t children;
};

void tr_ignore_signals(void); /* that are meant for the program */
/* Attaches to a process, says so on stdout, follows it to its end; the exit code. */
int tr_trace(const struct tr_target *target, const char *table, const char *folder, const char *mode);

/* ---- exec.c, folder.c: what else the program does ---- */

int tr_exec(int argc, char **argv, char **envp);
struct np_entry;
void tr_name_of(const struct np_entry *entry, char name[TR_PATH]);
pid_t tr_quiet_fork(void);
void tr_leave_program(void); /* who was the program by its descriptors and its session */
/* Keeps a folder made in the first of these places until its launch is over; 0, or the errno of why there is none. */
int tr_hold_folder(int places, char **place);

#endif
