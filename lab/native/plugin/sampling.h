/* The plugin's side of the sampler: see samples.h. */
#ifndef NUMAPLAN_LAB_SAMPLING_H
#define NUMAPLAN_LAB_SAMPLING_H

#include "rows.h"

#include <stdbool.h>
#include <stdint.h>

struct lab_sampling_countdown {
    _Alignas(64) int64_t left; /* accesses to the next sample of this vcpu; only its thread touches it */
};
extern struct lab_sampling_countdown lab_sampling_countdowns[VCPUS_MAX];

bool lab_sampling_open(const char *path, unsigned vcpus); /* false: the file cannot be used */
void lab_sampling_take(unsigned vcpu, uint64_t address, uint64_t code, unsigned flags, unsigned node);
void lab_sampling_set_cpu(unsigned vcpu, unsigned cpu);
void lab_sampling_switch(unsigned vcpu, uint64_t task);
void lab_sampling_answer(unsigned vcpu); /* MARK_SAMPLER */
uint64_t lab_now_ns(void);               /* by the host's CLOCK_MONOTONIC */

/* At each access: whether this one is due. */
static inline bool lab_sampling_due(unsigned vcpu, uint64_t parts) {
    return __builtin_expect((lab_sampling_countdowns[vcpu].left -= (int64_t)parts) <= 0, 0);
}

#endif
