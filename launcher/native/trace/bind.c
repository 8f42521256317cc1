/* Cpus by the plan, and the log that launcher/verify/logged_run.py reads: a line for each thread's birth and end. */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct pt_table table;
static int log_file = -1;
static bool overrides;

/* Several tracers of a job write to one log, each line at once. */
bool tr_bind_open(const char *path_of_table, const char *folder, bool hold) {
    char path[TR_PATH];
    overrides = hold;
    if (snprintf(path, sizeof path, "%s/trace.log", folder) >= (int)sizeof path) return false;
    log_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    return log_file >= 0 && pt_load(path_of_table, &table);
}

/* `EVENT PROCESS PATH PID TID PLANNED ERRNO MASK`: the mask in hex, lowest cpus first. */
static void log_task(char event, const struct tr_task *task, int error) {
    static char line[TR_PATH * 2 + 2 * PT_MASK + 128];
    unsigned char mask[PT_MASK];
    long bytes = syscall(SYS_sched_getaffinity, task->tid, sizeof mask, mask);
    while (bytes > 0 && !mask[bytes - 1]) bytes--;
    int used = snprintf(line, sizeof line - 2 * PT_MASK - 2, "%c %s %s %d %d %d %d ", event, task->process->name,
                        task->path, task->process->pid, task->tid, task->planned, error);
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

void tr_know(struct tr_task *task) {
    task->plan = task->path ? pt_find_thread(&table, task->process->hash, pt_hash(task->path)) : NULL;
    task->planned = task->plan != NULL;
}

void tr_bind(struct tr_task *task) {
    if (!task->path) return;
    tr_know(task);
    int error = set(task, task->plan ? task->plan : pt_find_unplanned(&table, task->process->hash));
    log_task('b', task, error);
}

void tr_bind_again(struct tr_task *task) {
    unsigned char now[PT_MASK] = {0}, wanted[PT_MASK];
    if (!overrides || !task->plan || !task->plan->cpus) return;
    pt_fill_mask(&table.cpus[task->plan->first_cpu], task->plan->cpus, wanted);
    if (syscall(SYS_sched_getaffinity, task->tid, sizeof now, now) > 0 && memcmp(now, wanted, sizeof now))
        set(task, task->plan);
}

void tr_bound_end(struct tr_task *task) {
    if (task->process && task->path && task->process->started) log_task('e', task, 0);
}
