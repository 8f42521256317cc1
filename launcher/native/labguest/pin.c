#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "guest.h"

/* Kernel threads have no executable. */
static bool is_user_process(const char *pid) {
    char path[300], target[8];
    snprintf(path, sizeof path, "/proc/%s/exe", pid);
    return readlink(path, target, sizeof target) >= 0;
}

static void pin_one(struct pinning *pinning, const struct job *job, pid_t task) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(job->cpus[pinning->next++ % job->cpu_count], &cpus);
    sched_setaffinity(task, sizeof cpus, &cpus);
}

static int numerically(const struct dirent **a, const struct dirent **b) {
    return atoi((*a)->d_name) - atoi((*b)->d_name);
}

static int is_number(const struct dirent *entry) {
    return isdigit((unsigned char)entry->d_name[0]);
}

static void pin_process(struct pinning *pinning, const struct job *job, const char *pid, pid_t *newest) {
    char path[300];
    struct dirent **tasks;
    snprintf(path, sizeof path, "/proc/%s/task", pid);
    int count = scandir(path, &tasks, is_number, numerically);
    for (int i = 0; i < count; i++) {
        pid_t task = atoi(tasks[i]->d_name);
        if (task > pinning->last && is_user_process(pid))
            pin_one(pinning, job, task);
        if (task > *newest)
            *newest = task;
        free(tasks[i]);
    }
    if (count >= 0)
        free(tasks);
}

void pin_new_threads(struct pinning *pinning, const struct job *job) {
    struct dirent **processes;
    pid_t newest = pinning->last;
    int count = scandir("/proc", &processes, is_number, numerically);
    for (int i = 0; i < count; i++) {
        if (atoi(processes[i]->d_name) >= pinning->first)
            pin_process(pinning, job, processes[i]->d_name, &newest);
        free(processes[i]);
    }
    if (count >= 0)
        free(processes);
    pinning->last = newest;
}
