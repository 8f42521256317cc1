/* The vcpus' turns on the host's cpus, where these are fewer.
 *
 * The host's kernel gives a vcpu some milliseconds at a time: a hundred thousand accesses, for which it has to itself
 * what threads contend for. On a machine each of them takes such a line from the others all the time. So a vcpu gives
 * the host's cpu up after some thousand accesses, as threads do under emulation. */
#ifndef NUMAPLAN_LAB_TURNS_H
#define NUMAPLAN_LAB_TURNS_H

#include "sharing.h"

#include <sched.h>

enum { TURN = 2048 }; /* accesses, a power of two */

extern bool lab_turns_taken;

void lab_turns_open(unsigned vcpus);

/* When a vcpu has made so many accesses, the last of all that lab_sharing_access was told. */
static inline void lab_turns_access(unsigned vcpu, uint64_t parts) {
    if (__builtin_expect(lab_sharing_made[vcpu].accesses % TURN < parts, 0) && lab_turns_taken) sched_yield();
}

#endif
