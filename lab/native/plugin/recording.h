/*
 * A recording of the program's accesses: one in so many, of each vcpu, in the order in which they were made, in a file
 * `recorded-VCPU` for each vcpu, and exact counts by task (rows.h).
 */
#ifndef NUMAPLAN_LAB_RECORDING_H
#define NUMAPLAN_LAB_RECORDING_H

#include "rows.h"

/* As lab/recording/stream.py reads it. */
struct lab_recorded_access {
    uint64_t time_ns; /* the host's CLOCK_MONOTONIC */
    uint64_t task;    /* the guest kernel's address of it */
    uint64_t address, physical, code;
    uint16_t cpu;
    uint8_t node, level;
    uint8_t reach; /* how many of the last-level caches of several sizes miss it */
    uint8_t store, unused[2];
};
_Static_assert(sizeof(struct lab_recorded_access) == 48, "the reader relies on it");

struct lab_recording_gap {
    _Alignas(64) int64_t left; /* accesses to the next sample of this vcpu; only its thread touches it */
};

extern bool lab_recording; /* whether there is one */
extern struct lab_recording_gap lab_recording_gaps[VCPUS_MAX];

bool lab_recording_option(const char *name, const char *value); /* false: not one of these, or not valid */
bool lab_recording_start(const char *directory, unsigned vcpus);
void lab_recording_finish(FILE *status, int failed); /* errno of another part; no vcpu makes accesses */
void lab_recording_set_cpu(unsigned vcpu, unsigned cpu);
/* One part of an access, which has the key of its place (nodes.h) for its physical address. */
void lab_recording_take(unsigned vcpu, const struct lab_recorded_access *access, unsigned offset, bool store);

/* A random number and the next state, which is not 0 (xorshift64). */
static inline uint64_t lab_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* At each access, or each half of a wide one: whether it is to be written down. */
static inline bool lab_recording_due(unsigned vcpu) {
    return __builtin_expect(--lab_recording_gaps[vcpu].left <= 0, 0);
}

#endif
