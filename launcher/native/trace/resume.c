/* A process that the preload library cannot look after any longer, as it restricts its system calls: from here on the tracer
 * does. Who its threads are is in the library's log.
 */
#include "preload.h"
#include "trace.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOT = sizeof(struct np_record), DEEPEST = TR_PATH / 2 };

struct log {
    const struct np_record *records;
    uint64_t count;
};

static struct log read_log(const char *path) {
    struct log log = {0};
    struct stat facts;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    void *memory = MAP_FAILED;
    if (file >= 0 && !fstat(file, &facts) && (size_t)facts.st_size >= sizeof(struct np_log_header))
        memory = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (memory == MAP_FAILED) return log;
    const struct np_log_header *head = memory;
    uint64_t used = atomic_load(&head->cursor) * SLOT, most = (uint64_t)facts.st_size;
    log.records = (const void *)(head + 1);
    log.count = ((used < most ? used : most) - sizeof *head) / SLOT;
    return log;
}

/* The newest birth that has this number, or this tid; NULL: not logged. Texts lie between records, and no text is one. */
static const struct np_record *birth_of(const struct log *log, uint32_t number, pid_t tid) {
    for (uint64_t i = log->count; i-- > 0;) {
        const struct np_record *at = &log->records[i];
        if (at->kind == NP_THREAD_START && atomic_load(&at->check) == np_check_of(at) &&
            (tid ? at->a == (uint32_t)tid : at->thread == number))
            return at;
    }
    return NULL;
}

/* False: it is too deep, or its birth was lost. */
static bool path_of(const struct log *log, const struct np_record *birth, uint32_t number, char path[TR_PATH],
                    int deep) {
    if (number == 0) return snprintf(path, TR_PATH, "0") > 0;
    uint32_t parent = birth ? (uint32_t)(birth->b >> 32) : number;
    if (!birth || deep == DEEPEST || parent >= number) return false;
    if (!path_of(log, birth_of(log, parent, 0), parent, path, deep + 1)) return false;
    size_t length = strlen(path), room = TR_PATH - length;
    return (size_t)snprintf(path + length, room, ".%u", (uint32_t)birth->b) < room;
}

static uint32_t children_of(const struct log *log, uint32_t number) {
    uint32_t most = 0;
    for (uint64_t i = 0; i < log->count; i++) {
        const struct np_record *at = &log->records[i];
        if (at->kind != NP_THREAD_START || at->thread == 0 || atomic_load(&at->check) != np_check_of(at)) continue;
        if (at->b >> 32 == number && (uint32_t)at->b > most) most = (uint32_t)at->b;
    }
    return most;
}

static bool seize(struct tr_process *process, pid_t tid, const struct log *log) {
    char path[TR_PATH];
    struct tr_task *task = tr_add(tid);
    if (!task) return false;
    const struct np_record *birth = tid == process->pid ? NULL : birth_of(log, 0, tid);
    bool known = tid == process->pid || birth;
    uint32_t number = birth ? birth->thread : 0;
    tr_join(task, process, known && path_of(log, birth, number, path, 0) ? path : NULL);
    task->children = known ? children_of(log, number) : 0;
    tr_know(task, NULL);
    if (tr_attach(tid)) return true;
    tr_remove(task);
    return false;
}

/* While some are made by threads that are not followed yet. */
bool tr_resume(pid_t pid, const char *name, uint32_t children, const char *path_of_log) {
    char folder[64];
    struct tr_process *process = tr_new_process(pid, name);
    struct log log = read_log(path_of_log);
    bool any = false;
    if (!process) return false;
    process->children = children;
    process->started = true;
    process->tasks = 1; /* it stays while there may be none */
    snprintf(folder, sizeof folder, "/proc/%d/task", pid);
    for (bool more = true; more;) {
        DIR *tasks = opendir(folder);
        const struct dirent *entry;
        more = false;
        while (tasks && (entry = readdir(tasks))) {
            pid_t tid = isdigit((unsigned char)*entry->d_name) ? atoi(entry->d_name) : 0;
            if (tid && !tr_find(tid)) more = seize(process, tid, &log) || more;
        }
        if (tasks) closedir(tasks);
        any = any || more;
    }
    return any;
}
