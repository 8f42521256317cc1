/* Cpus by the plan, and the log that launcher/verify/logged_run.py reads: a line for each thread's birth and end. */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct pt_table table;
static struct pt_lane *lanes; /* of all processes, by the row of the first thread in each */
static int log_file = -1;
static bool overrides;

/* Several tracers of a job write to one log, each line at once. */
bool tr_bind_open(const char *path_of_table, const char *folder, bool hold) {
    char path[TR_PATH];
    overrides = hold;
    if (snprintf(path, sizeof path, "%s/trace.log", folder) >= (int)sizeof path) return false;
    log_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (log_file < 0 || !pt_load(path_of_table, &table)) return false;
    lanes = calloc((size_t)table.header->threads + 1, sizeof *lanes);
    return lanes;
}

/* `EVENT PROCESS PATH PID TID NAMED ERRNO MASK`: the mask in hex, lowest cpus first. */
static void log_task(char event, const struct tr_task *task, int error) {
    static char line[TR_PATH * 2 + 2 * PT_MASK + 128];
    unsigned char mask[PT_MASK];
    long bytes = syscall(SYS_sched_getaffinity, task->tid, sizeof mask, mask);
    while (bytes > 0 && !mask[bytes - 1]) bytes--;
    int used = snprintf(line, sizeof line - 2 * PT_MASK - 2, "%c %s %s %d %d %d %d ", event, task->process->name,
                        task->path, task->process->pid, task->tid, task->named, error);
    if (used < 0 || (size_t)used >= sizeof line - 2 * PT_MASK - 2) return;
    for (long i = 0; i < bytes; i++) used += sprintf(line + used, "%02x", mask[i]);
    if (bytes <= 0) line[used++] = '-';
    line[used++] = '\n';
    ssize_t written = write(log_file, line, (size_t)used);
    (void)written; /* a full disk costs the report, not the binding */
}

static int set(const struct tr_task *task, const struct pt_thread *row) {
    unsigned char mask[PT_MASK];
    if (!row || !row->cpus) return 0;
    pt_fill_mask(&table.cpus[row->first_cpu], row->cpus, mask);
    return syscall(SYS_sched_setaffinity, task->tid, sizeof mask, mask) ? errno : 0;
}

void tr_know(struct tr_task *task, struct tr_task *creator) {
    const struct pt_thread *plan = task->path ? pt_find_thread(&table, task->process->hash, pt_hash(task->path)) : NULL;
    task->seat = plan;
    task->named = plan ? TR_PLANNED : TR_UNPLANNED;
    if (!creator || !task->path) return;
    task->lane = pt_lane_take(&creator->made, lanes, plan);
    if (plan || !task->lane) return;
    task->seat = task->lane->seat;
    task->named = TR_FOLLOWS;
}

void tr_bind(struct tr_task *task) {
    if (!task->path) return;
    task->own = false;
    int error = set(task, task->seat ? task->seat : pt_find_unplanned(&table, task->process->hash));
    log_task('b', task, error);
}

void tr_leave_lanes(const struct tr_process *process) {
    for (uint32_t i = 0; i < table.header->threads; i++)
        if (table.threads[i].process == process->hash) lanes[i] = (struct pt_lane){0};
}

void tr_bind_again(struct tr_task *task) {
    unsigned char now[PT_MASK] = {0}, wanted[PT_MASK];
    if (!overrides || !task->seat || !task->seat->cpus) return;
    pt_fill_mask(&table.cpus[task->seat->first_cpu], task->seat->cpus, wanted);
    if (syscall(SYS_sched_getaffinity, task->tid, sizeof now, now) > 0 && memcmp(now, wanted, sizeof now))
        set(task, task->seat);
}

/* Who asks for all the cpus that it was told of has no wish of its own, as in the preload library. */
bool tr_keeps_plan(struct tr_task *task) {
    if (!overrides && !told_all(task->tid)) return false;
    return set(task, task->seat) == 0;
}

void tr_bound_end(struct tr_task *task) {
    pt_lane_leave(task->lane); /* before who waits for its end makes another */
    task->lane = NULL;
    if (task->process && task->path && task->process->started) log_task('e', task, 0);
}
