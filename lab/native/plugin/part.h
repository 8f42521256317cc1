/* The part of the run that exact counts are of: while the recorder's switch says so, so many accesses of that, and of
 * these what each process marks. */
#ifndef NUMAPLAN_LAB_PART_H
#define NUMAPLAN_LAB_PART_H

#include "qemu_plugin.h"

#include <stdbool.h>

/* skip=ACCESSES, take=ACCESSES, wanted=PATH (profiler/backends/emulation/word.py), marked=on. false: not one, or not
 * valid. */
bool lab_part_option(const char *name, const char *value);

extern bool lab_part_asked;
bool lab_part_access(unsigned vcpu, unsigned process, unsigned accesses);

/* What a process says (marks.h) by a store to this byte of its own; the number of the process if it says that the task
 * is one of its own, else 0. Processes count from 1 on. */
unsigned lab_part_told(unsigned byte);
void lab_part_start(void); /* a recording: nobody has said anything */

/* At each access by the program's code: whether it is in the part. */
static inline bool lab_part_within(unsigned vcpu, unsigned process, qemu_plugin_meminfo_t info) {
    if (__builtin_expect(!lab_part_asked, 1)) return true;
    return lab_part_access(vcpu, process,
                           qemu_access_parts(info) * (qemu_access_rw(info) == QEMU_PLUGIN_MEM_RW ? 2 : 1));
}

#endif
