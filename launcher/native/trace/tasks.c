/* Tasks by tid, and the processes that they are in. */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096 };

static struct tr_task *buckets[BUCKETS];

static struct tr_task **bucket(pid_t tid) { return &buckets[(unsigned)tid % BUCKETS]; }

struct tr_task *tr_find(pid_t tid) {
    struct tr_task *task = *bucket(tid);
    while (task && task->tid != tid) task = task->next;
    return task;
}

struct tr_task *tr_add(pid_t tid) {
    struct tr_task *task = calloc(1, sizeof *task);
    if (!task) return NULL;
    task->tid = tid;
    task->next = *bucket(tid);
    *bucket(tid) = task;
    return task;
}

static void leave(struct tr_process *process) {
    if (!process || --process->tasks) return;
    free(process->name);
    free(process);
}

void tr_remove(struct tr_task *task) {
    struct tr_task **at = bucket(task->tid);
    while (*at != task) at = &(*at)->next;
    *at = task->next;
    pt_lane_leave(task->lane);
    leave(task->process);
    free(task->path);
    free(task);
}

void tr_each(void (*visit)(struct tr_task *task)) {
    for (int i = 0; i < BUCKETS; i++)
        for (struct tr_task *task = buckets[i]; task; task = task->next) visit(task);
}

struct tr_process *tr_new_process(pid_t pid, const char *name) {
    struct tr_process *process = calloc(1, sizeof *process);
    char *copy = process ? strdup(name) : NULL;
    if (!copy) {
        free(process);
        return NULL;
    }
    process->pid = pid;
    process->name = copy;
    process->hash = pt_hash(copy);
    return process;
}

static void name_task(struct tr_task *task, const char *path) {
    free(task->path);
    task->path = path ? strdup(path) : NULL;
    task->children = 0;
    task->named = TR_UNPLANNED;
    task->seat = NULL;
    task->lane = NULL;
    task->made = (struct pt_lanes){0};
    task->question.address = 0;
}

void tr_join(struct tr_task *task, struct tr_process *process, const char *path) {
    process->tasks++;
    leave(task->process);
    task->process = process;
    name_task(task, path);
}

/* Exec gives the thread that called it the pid of its process, and the other threads no end that is told. */
void tr_exec_thread(struct tr_process *process, struct tr_task *task, pid_t former) {
    for (int i = 0; i < BUCKETS; i++)
        for (struct tr_task *other = buckets[i], *next; other; other = next) {
            next = other->next;
            if (other != task && (other->process == process || other->tid == former)) tr_remove(other);
        }
    name_task(task, "0");
}
