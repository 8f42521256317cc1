#include "told_cpus.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MASK_BYTES = 1024 };

static unsigned char at_start[MASK_BYTES];
static long at_start_bytes;

void told_start(void) { at_start_bytes = syscall(SYS_sched_getaffinity, 0, sizeof at_start, at_start); }

void told_answer(pid_t asker, const struct told_question *question, int64_t bytes) {
    if (bytes > at_start_bytes) bytes = at_start_bytes;
    if (bytes <= 0 || (uint64_t)bytes > question->room) return;
    struct iovec ours = {at_start, (size_t)bytes}, theirs = {(void *)(uintptr_t)question->address, (size_t)bytes};
    process_vm_writev(asker, &ours, 1, &theirs, 1, 0);
}

bool told_all(pid_t tid) {
    unsigned char now[MASK_BYTES] = {0};
    if (syscall(SYS_sched_getaffinity, tid, sizeof now, now) < 0) return false;
    for (long i = 0; i < at_start_bytes; i++)
        if (at_start[i] & ~now[i]) return false;
    return true;
}
