/* What a program learns about its cpus while it starts: the main thread's first system calls are looked at, and those
 * that ask for its affinity are answered, until it sets one of its own; later ones cost nothing.
 */
#include "trace.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>

enum { WATCHED = 4000 };

void tr_watch_calls(struct tr_process *process) { process->watched = WATCHED; }

void tr_answer_affinity(struct tr_task *task) {
    struct __ptrace_syscall_info call = {0};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof call, &call) <= 0 || call.arch != TOLD_CALLS) return;
    if (task->process->watched) task->process->watched--;
    if (call.op == PTRACE_SYSCALL_INFO_ENTRY) {
        bool ours = task->seat && (call.entry.args[0] == 0 || call.entry.args[0] == (uint64_t)task->tid);
        bool asks = ours && call.entry.nr == SYS_sched_getaffinity && !task->own;
        task->question = (struct told_question){asks ? call.entry.args[2] : 0, call.entry.args[1]};
        task->wishes = ours && call.entry.nr == SYS_sched_setaffinity;
        if ((task->question.address || task->wishes) && !task->process->watched)
            task->process->watched = 1; /* the kernel's answer is still to come */
    } else if (task->question.address) {
        told_answer(task->tid, &task->question, call.exit.rval);
        task->question.address = 0;
    } else if (task->wishes) {
        if (call.exit.rval == 0) task->own = !tr_keeps_plan(task);
        task->wishes = false;
    }
}
