/* Waiting by polling: accesses of loops that say so, by an instruction between any two looks (x86: pause) or by giving
 * up the cpu (sched_yield).
 *
 * How often a thread looks until what it waits for has come tells of the guest's speed, not of the program: so these
 * accesses are counted apart. */
#ifndef NUMAPLAN_LAB_POLLS_H
#define NUMAPLAN_LAB_POLLS_H

#include "rows.h"

#include <stddef.h>

/* Ask to be told of what a block of user code waits by. */
void lab_polls_watch(const struct qemu_plugin_tb *block, size_t instructions);

/* At each access that is counted. */
static inline void lab_polls_access(struct lab_row *row, unsigned node, uint64_t parts) {
    struct lab_looks *looks = &row->looks;
    if (__builtin_expect(looks->seen > LOOKS_MOST, 1)) return;
    for (; parts && looks->seen < LOOKS_MOST; parts--) looks->node[looks->seen++] = (uint8_t)node;
    if (parts) looks->seen = LOOKS_MOST + 1;
}

#endif
