/*
 * The cpus of a program whose tasks are put on one cpu each: all of the machine's, as far as it is told. A filter stops
 * its tasks when they ask, and when they bind themselves: from then on they, and those they make, are told the truth.
 */
#include "guest.h"
#include "told_cpus.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct task {
    struct told_question question;
    pid_t binds; /* whom it is about to bind; 0: nobody */
    bool bound;  /* by the program */
} *tasks;        /* by their ids */
static size_t room;

static struct task *known(pid_t id) {
    size_t needed = (size_t)id + 1;
    if (needed > room) {
        needed += room;
        tasks = realloc(tasks, needed * sizeof *tasks);
        if (!tasks) guest_die("no memory");
        memset(tasks + room, 0, (needed - room) * sizeof *tasks);
        room = needed;
    }
    return &tasks[id];
}

/* As root, and so without giving up what a set-user-id program becomes. */
void guest_affinity_watch(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TOLD_CALLS, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getaffinity, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        guest_die("the kernel cannot stop who asks for its cpus: %s", strerror(errno));
}

void guest_affinity_start(pid_t program) {
    told_start();
    *known(program) = (struct task){0};
}

void guest_affinity_born(pid_t task, pid_t creator) {
    bool bound = known(creator)->bound;
    *known(task) = (struct task){.bound = bound};
}

static bool in_one_process(pid_t task, pid_t other) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", task, other);
    return task == other || !access(path, F_OK);
}

/* Whether the kernel's answer is to be waited for. */
bool guest_affinity_called(pid_t task) {
    struct __ptrace_syscall_info call = {0};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, task, sizeof call, &call) <= 0 || call.op != PTRACE_SYSCALL_INFO_SECCOMP)
        return false;
    const uint64_t *arguments = call.seccomp.args;
    pid_t of = (pid_t)arguments[0] ? (pid_t)arguments[0] : task;
    if (of < 0 || !in_one_process(task, of)) return false;
    bool binds = call.seccomp.nr == SYS_sched_setaffinity, asks = !binds && !known(of)->bound;
    struct task *caller = known(task);
    caller->binds = binds ? of : 0;
    caller->question = (struct told_question){asks ? arguments[2] : 0, arguments[1]};
    return binds || asks;
}

void guest_affinity_answered(pid_t task) {
    struct __ptrace_syscall_info call = {0};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, task, sizeof call, &call) <= 0 || call.op != PTRACE_SYSCALL_INFO_EXIT) return;
    const struct task *caller = known(task);
    if (caller->question.address) told_answer(task, &caller->question, call.exit.rval);
    else if (caller->binds && call.exit.rval == 0) known(caller->binds)->bound = true;
}
