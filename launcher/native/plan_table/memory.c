/* The kernel's policy for the memory of a process: of the library, and of what the tracer starts. */
#include "plan_table.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORD = 8 * sizeof(unsigned long), MASK_WORDS = (PT_MAX_NODE + 1) / WORD };

void pt_set_memory(const uint32_t *nodes, uint32_t count) {
    unsigned long mask[MASK_WORDS] = {0};
    for (uint32_t i = 0; i < count; i++) mask[nodes[i] / WORD] |= 1ul << nodes[i] % WORD;
    /* The kernel reads one bit less than it is told. */
    if (count) syscall(SYS_set_mempolicy, count > 1 ? MPOL_INTERLEAVE : MPOL_PREFERRED, mask, PT_MAX_NODE + 2);
}

bool pt_change_policy(int from, int to) {
    int mode = -1;
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) || mode != from) return false;
    return syscall(SYS_set_mempolicy, to, NULL, 0) == 0;
}
