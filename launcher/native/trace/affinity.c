/* What a program learns about its cpus while it starts.
 *
 * Runtimes ask for their affinity at their start, on the main thread, to find out how many threads to make. One
 * that is bound to one cpu would make one. So the main thread's first system calls are looked at, and
 * sched_getaffinity is answered as it would have been without us; later ones cost nothing.
 */
#include "trace.h"

#include <linux/audit.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WATCHED = 4000 };

#if defined __aarch64__
#define OUR_CALLS AUDIT_ARCH_AARCH64
#else
#define OUR_CALLS AUDIT_ARCH_X86_64
#endif

static unsigned char at_start[PT_MASK];
static long at_start_bytes;

void tr_affinity_start(void) { at_start_bytes = syscall(SYS_sched_getaffinity, 0, sizeof at_start, at_start); }

void tr_watch_calls(struct tr_process *process) { process->watched = WATCHED; }

static void answer(const struct tr_task *task, int64_t bytes) {
    if (bytes > at_start_bytes) bytes = at_start_bytes;
    if (bytes <= 0 || (uint64_t)bytes > task->room) return;
    struct iovec ours = {at_start, (size_t)bytes}, theirs = {(void *)(uintptr_t)task->mask_address, (size_t)bytes};
    process_vm_writev(task->tid, &ours, 1, &theirs, 1, 0);
}

void tr_answer_affinity(struct tr_task *task) {
    struct __ptrace_syscall_info call = {0};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof call, &call) <= 0 || call.arch != OUR_CALLS) return;
    if (task->process->watched) task->process->watched--;
    if (call.op == PTRACE_SYSCALL_INFO_ENTRY) {
        bool ours = call.entry.nr == SYS_sched_getaffinity &&
                    (call.entry.args[0] == 0 || call.entry.args[0] == (uint64_t)task->tid);
        task->mask_address = ours && task->planned ? call.entry.args[2] : 0;
        task->room = call.entry.args[1];
        if (task->mask_address && !task->process->watched) task->process->watched = 1; /* its answer is still to come */
    } else if (task->mask_address) {
        answer(task, call.exit.rval);
        task->mask_address = 0;
    }
}
