/* What a program is told of its cpus by who binds its threads from outside: what it would be told if nobody did.
 *
 * Runtimes ask for their affinity to find out how many threads to make, and one that is bound to one cpu would make one.
 * So the kernel answers sched_getaffinity, and its answer is written over before the program goes on.
 */
#ifndef NUMAPLAN_TOLD_CPUS_H
#define NUMAPLAN_TOLD_CPUS_H

#include <linux/audit.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#if defined __aarch64__
#define TOLD_CALLS AUDIT_ARCH_AARCH64
#else
#define TOLD_CALLS AUDIT_ARCH_X86_64
#endif

struct told_question {
    uint64_t address, room; /* where the kernel is about to answer, 0: nowhere; bytes there */
};

void told_start(void); /* the cpus of who calls this are those that programs are told of */
/* The kernel has answered with so many bytes; a negative number is an error. */
void told_answer(pid_t asker, const struct told_question *, int64_t bytes);
bool told_all(pid_t tid); /* whether it may run on all of them */

#endif
