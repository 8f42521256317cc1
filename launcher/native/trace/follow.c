/* The tracer's loop: what the kernel says of the program's tasks, and how each stop is answered. */
#include "trace.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SYSCALL_STOP = SIGTRAP | 0x80, ORPHAN_S = 2 };
enum {
    OPTIONS = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT |
    PTRACE_O_TRACESYSGOOD
};

bool tr_attach(pid_t tid) { return ptrace(PTRACE_SEIZE, tid, NULL, OPTIONS) == 0; }

bool tr_seize(pid_t pid, const char *name) {
    struct tr_task *task = tr_add(pid);
    struct tr_process *process = tr_new_process(pid, name);
    if (!task || !process) return false;
    tr_join(task, process, "0");
    return tr_attach(pid);
}

static void resume(const struct tr_task *task, int signal) {
    const struct tr_process *process = task->process;
    bool look = process && process->watched && task->tid == process->pid;
    ptrace(look ? PTRACE_SYSCALL : PTRACE_CONT, task->tid, NULL, (long)signal);
}

static bool is_thread_of(const struct tr_process *process, pid_t tid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", process->pid, tid);
    return access(path, F_OK) == 0;
}

static void name_child(const char *parent, uint32_t number, char child[TR_PATH]) {
    int length = parent ? snprintf(child, TR_PATH, "%s.%u", parent, number) : TR_PATH;
    if (length >= TR_PATH) child[0] = 0;
}

static void join_thread(struct tr_task *creator, struct tr_task *born) {
    char path[TR_PATH];
    name_child(creator->path, ++creator->children, path);
    tr_join(born, creator->process, *path ? path : NULL);
    tr_know(born, creator);
}

static void join_process(struct tr_task *creator, struct tr_task *born) {
    char name[TR_PATH];
    name_child(creator->process->name, ++creator->process->children, name);
    struct tr_process *process = *name ? tr_new_process(born->tid, name) : NULL;
    if (!process) return;
    process->started = true;
    tr_join(born, process, "0");
    tr_know(born, NULL);
}

/* The creator stopped in clone, fork or vfork. The new task stands still until we let it go, so it is bound now. */
static void child_made(struct tr_task *creator) {
    unsigned long message = 0;
    if (ptrace(PTRACE_GETEVENTMSG, creator->tid, NULL, &message) || !message) return;
    struct tr_task *born = tr_find((pid_t)message);
    if (!born) born = tr_add((pid_t)message);
    if (!born) return;
    if (!creator->process) born->nameless = true;
    else if (is_thread_of(creator->process, born->tid)) join_thread(creator, born);
    else join_process(creator, born);
    if (born->process && born->process->started) tr_bind(born);
    if (born->waiting) {
        born->waiting = false;
        resume(born, 0);
    }
}

static void exec(struct tr_task *task) {
    unsigned long former = 0;
    if (!task->process) return;
    ptrace(PTRACE_GETEVENTMSG, task->tid, NULL, &former);
    tr_exec_thread(task->process, task, (pid_t)former == task->tid ? 0 : (pid_t)former);
    tr_leave_lanes(task->process);
    task->process->started = true;
    tr_watch_calls(task->process);
    tr_know(task, NULL);
    tr_bind(task);
}

static bool stops_group(int signal) {
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

static time_t seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* A creator that was killed, or whose process became another program, never tells: its child runs on, unbound. */
static void release_orphan(struct tr_task *task) {
    if (!task->waiting || seconds() - task->since < ORPHAN_S) return;
    task->waiting = false;
    task->nameless = true;
    resume(task, 0);
}

/* A task at its birth, in a stop of its group (Ctrl-Z), or woken from that. */
static void event_stopped(struct tr_task *task, int signal) {
    if (stops_group(signal)) {
        ptrace(PTRACE_LISTEN, task->tid, NULL, NULL);
    } else if (!task->process && !task->nameless) {
        task->waiting = true;
        task->since = seconds();
    } else {
        resume(task, 0);
    }
}

static void stopped(struct tr_task *task, int status) {
    int signal = WSTOPSIG(status), event = status >> 16;
    switch (event) {
    case 0:
        if (signal == SYSCALL_STOP && task->process) tr_answer_affinity(task);
        resume(task, signal == SYSCALL_STOP ? 0 : signal);
        return;
    case PTRACE_EVENT_STOP: event_stopped(task, signal); return;
    case PTRACE_EVENT_CLONE:
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK: child_made(task); break;
    case PTRACE_EVENT_EXEC: exec(task); break;
    case PTRACE_EVENT_EXIT: tr_bound_end(task); break;
    }
    resume(task, 0);
}

/* Until nobody is left; the clock's signal interrupts the wait. */
void tr_follow(void) {
    for (;;) {
        int status;
        pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0 && errno != EINTR) return;
        if (tid < 0) {
            tr_each(tr_bind_again);
            tr_each(release_orphan);
            continue;
        }
        struct tr_task *task = tr_find(tid);
        if (!task) task = tr_add(tid);
        if (!task) {
            if (WIFSTOPPED(status)) ptrace(PTRACE_DETACH, tid, NULL, NULL); /* no memory: it runs, unbound */
            continue;
        }
        if (WIFSTOPPED(status)) stopped(task, status);
        else tr_remove(task);
    }
}
