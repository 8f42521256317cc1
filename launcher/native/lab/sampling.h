/* The plugin's side of the sampler: see samples.h. */
#ifndef NUMAPLAN_LAB_SAMPLING_H
#define NUMAPLAN_LAB_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#include "rows.h"

struct sampling_countdown {
    _Alignas(64) int64_t left; /* accesses to the next sample of this vcpu; only its thread touches it */
};
extern struct sampling_countdown sampling_countdowns[VCPUS_MAX];

bool sampling_open(const char *path, unsigned vcpus); /* false: the file cannot be used */
void sampling_take(unsigned vcpu, uint64_t address, uint64_t code, bool is_store, unsigned node);
void sampling_set_cpu(unsigned vcpu, unsigned cpu);
void sampling_switch(unsigned vcpu, uint64_t task);
void sampling_answer(unsigned vcpu); /* MARK_SAMPLER */

/* At each access: whether this one is due. */
static inline bool sampling_due(unsigned vcpu, uint64_t parts) {
    return __builtin_expect((sampling_countdowns[vcpu].left -= (int64_t)parts) <= 0, 0);
}

#endif
