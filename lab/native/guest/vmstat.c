#include "guest.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {
    "numa_pages_migrated",    "pgmigrate_success", "numa_hint_faults",
    "numa_hint_faults_local", "numa_pte_updates",  "pgfault",
};
#define COUNT (sizeof names / sizeof *names)

void guest_vmstat_read(struct guest_vmstat *stat) {
    char name[64];
    long long value;
    memset(stat, 0, sizeof *stat);
    FILE *file = fopen("/proc/vmstat", "re");
    while (file && fscanf(file, "%63s %lld", name, &value) == 2)
        for (size_t i = 0; i < COUNT; i++)
            if (!strcmp(name, names[i])) stat->values[i] = value;
    if (file) fclose(file);
    stat->compacted = guest_trace_compacted();
}

void guest_vmstat_add_change(struct guest_frame *frame, const struct guest_vmstat *before,
                             const struct guest_vmstat *after) {
    for (size_t i = 0; i < COUNT; i++) guest_frame_add_number(frame, names[i], after->values[i] - before->values[i]);
    guest_frame_add_number(frame, "compacted", after->compacted - before->compacted);
}
