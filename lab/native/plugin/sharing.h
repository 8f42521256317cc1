/*
 * Threads that share a cpu, and how long they wait for each other, in the accesses that the cpu makes meanwhile.
 *
 * The kernel notes in each task since when it waits in a cpu's queue (sched_info.last_queued), whoever wakes it or takes
 * its turn from it. These notes are seen (kernel.c). One that then only looks whether it may go on (polls.h) has lost
 * nothing; who worked beside it has.
 */
#ifndef NUMAPLAN_LAB_SHARING_H
#define NUMAPLAN_LAB_SHARING_H

#include "rows.h"

struct lab_sharing_made {
    _Alignas(64) uint64_t accesses; /* of a vcpu; only its thread writes it */
};
extern struct lab_sharing_made lab_sharing_made[VCPUS_MAX];

void lab_sharing_open(unsigned vcpus);
bool lab_sharing_seen(void); /* whether the kernel's notes are */
void lab_sharing_queue(unsigned vcpu, uint64_t task); /* waits from now on, unless it does so already; said by a vcpu */
void lab_sharing_unqueue(uint64_t task); /* leaves the queue, to run there or to wait in another cpu's; or is new */
void lab_sharing_leave(unsigned vcpu); /* the vcpu goes on with another task than that of its row, or the row is read */
void lab_sharing_enter(unsigned vcpu); /* its row is now that of the other, or was cleared */
unsigned lab_sharing_waiting(uint64_t *tasks, unsigned most); /* those in the queues now; how many */
void lab_sharing_reset(void);

/* At each access, or several at a time. */
static inline void lab_sharing_access(unsigned vcpu, uint64_t parts) {
    uint64_t *made = &lab_sharing_made[vcpu].accesses;
    __atomic_store_n(made, *made + parts, __ATOMIC_RELAXED);
}

#endif
