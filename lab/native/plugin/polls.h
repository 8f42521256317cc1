/* Waiting by polling: accesses of loops that say so to the cpu, by an instruction between any two looks (x86: pause).
 *
 * How often a thread looks until what it waits for has come tells of the guest's speed, not of the program: so these
 * accesses are counted apart. */
#ifndef NUMAPLAN_LAB_POLLS_H
#define NUMAPLAN_LAB_POLLS_H

#include "rows.h"

#include <stddef.h>

#define POLL_ACCESSES 8 /* at most, from one pause to the next */

struct lab_polls {
    _Alignas(64) unsigned seen; /* accesses since the last pause; more than there is room for: not a loop that waits */
    uint8_t node[POLL_ACCESSES]; /* of each */
};
extern struct lab_polls lab_polls[VCPUS_MAX]; /* only the vcpu's thread touches its own */

/* Ask to be told of the pauses in a block of user code. */
void lab_polls_watch(const struct qemu_plugin_tb *block, size_t instructions);
void lab_polls_switch(unsigned vcpu); /* the vcpu goes on with another task */
void lab_polls_reset(void);

/* At each access that is counted. */
static inline void lab_polls_access(unsigned vcpu, unsigned node, uint64_t parts) {
    struct lab_polls *polls = &lab_polls[vcpu];
    if (__builtin_expect(polls->seen > POLL_ACCESSES, 1)) return;
    for (; parts && polls->seen < POLL_ACCESSES; parts--) polls->node[polls->seen++] = (uint8_t)node;
    if (parts) polls->seen = POLL_ACCESSES + 1;
}

#endif
