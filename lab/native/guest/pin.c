/*
 * Each new task of the program goes to its cpu before its first instruction: the agent traces births, and calls
 * about affinity. A task that was born waits for us, and so does its creator, so the order is that of creation under
 * one creator.
 */
#include "guest.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define EVENT(status) ((status) >> 16)

enum { CALL_ENDED = SIGTRAP | 0x80 };

static bool take_out(struct guest_pids *set, pid_t pid) {
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i] == pid) {
            set->items[i] = set->items[--set->count];
            return true;
        }
    return false;
}

static void put_in(struct guest_pids *set, pid_t pid) {
    if (set->count == set->room) {
        size_t room = set->room ? 2 * set->room : 64;
        pid_t *grown = realloc(set->items, room * sizeof *grown);
        if (!grown) guest_die("no memory");
        set->items = grown;
        set->room = room;
    }
    set->items[set->count++] = pid;
}

bool guest_pin_follow(pid_t program) {
    long births = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
    guest_affinity_start(program);
    return !ptrace(PTRACE_SEIZE, program, NULL, births | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD);
}

static void go_on(pid_t task, int with_signal) {
    (void)!ptrace(PTRACE_CONT, task, NULL, (long)with_signal); /* fails only for a task that was killed */
}

static void pin_child(struct guest_pinning *pinning, const struct guest_job *job, pid_t creator) {
    unsigned long child = 0;
    int status;
    cpu_set_t cpus;
    if (ptrace(PTRACE_GETEVENTMSG, creator, NULL, &child) || child == 0) return;
    if (!take_out(&pinning->early, (pid_t)child) && waitpid((pid_t)child, &status, __WALL) > 0 && !WIFSTOPPED(status))
        return; /* killed before it began */
    CPU_ZERO(&cpus);
    CPU_SET(job->cpus[pinning->next++ % job->cpu_count], &cpus);
    sched_setaffinity((pid_t)child, sizeof cpus, &cpus);
    guest_affinity_born((pid_t)child, creator);
    go_on((pid_t)child, 0);
}

void guest_pin_at_stop(struct guest_pinning *pinning, const struct guest_job *job, pid_t task, int status) {
    int event = EVENT(status), number = WSTOPSIG(status);
    if (event == 0 && number == CALL_ENDED) {
        guest_affinity_answered(task);
        go_on(task, 0);
    } else if (event == 0) {
        go_on(task, number);
    } else if (event == PTRACE_EVENT_SECCOMP) {
        (void)!ptrace(guest_affinity_called(task) ? PTRACE_SYSCALL : PTRACE_CONT, task, NULL, NULL);
    } else if (event != PTRACE_EVENT_STOP) {
        pin_child(pinning, job, task);
        go_on(task, 0);
    } else if (number != SIGTRAP) { /* stopped by a signal: it stays so until it is continued */
        put_in(&pinning->listening, task);
        (void)!ptrace(PTRACE_LISTEN, task, NULL, NULL);
    } else if (take_out(&pinning->listening, task)) {
        go_on(task, 0);
    } else {
        put_in(&pinning->early, task); /* new, and heard of before its creator */
    }
}

void guest_pin_end(struct guest_pinning *pinning) {
    free(pinning->early.items);
    free(pinning->listening.items);
}
