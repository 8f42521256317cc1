/* Vcpus take turns on the host's cpus, of which there may be fewer.
 *
 * The host's kernel lets a thread run for milliseconds: a hundred thousand accesses, for which no other vcpu could take
 * a line from this one. So each offers the host's cpu to the others after some accesses of user code. */
#ifndef NUMAPLAN_LAB_TURNS_H
#define NUMAPLAN_LAB_TURNS_H

#include "rows.h"

struct lab_turn {
    _Alignas(64) int64_t left; /* accesses of this vcpu; only its thread touches it */
    uint64_t random;
};
extern struct lab_turn lab_turns[VCPUS_MAX];

bool lab_turns_option(const char *name, const char *value); /* false: not of turns, or not valid */
void lab_turns_pass(unsigned vcpu);

/* When an access is counted, and recorded where it is to be: others may go on before this returns. */
static inline void lab_turns_access(unsigned vcpu, uint64_t parts) {
    struct lab_turn *turn = &lab_turns[vcpu];
    turn->left -= (int64_t)parts;
    if (__builtin_expect(turn->left <= 0, 0)) lab_turns_pass(vcpu);
}

#endif
