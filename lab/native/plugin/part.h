/* The part of the run that exact counts are of: while the recorder's switch says so, and so many accesses of that. */
#ifndef NUMAPLAN_LAB_PART_H
#define NUMAPLAN_LAB_PART_H

#include "qemu_plugin.h"

#include <stdbool.h>

/* skip=ACCESSES, take=ACCESSES, wanted=PATH (profiler/backends/emulation/word.py). false: not one, or not valid. */
bool lab_part_option(const char *name, const char *value);

extern bool lab_part_asked;
bool lab_part_access(unsigned vcpu, unsigned accesses);

/* At each access by the program's code: whether it is in the part. */
static inline bool lab_part_within(unsigned vcpu, qemu_plugin_meminfo_t info) {
    if (__builtin_expect(!lab_part_asked, 1)) return true;
    return lab_part_access(vcpu, qemu_access_parts(info) * ((info >> 16 & 1) + (info >> 17 & 1)));
}

#endif
