#include "guest.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {
    "numa_pages_migrated",    "pgmigrate_success", "numa_hint_faults",
    "numa_hint_faults_local", "numa_pte_updates",  "pgfault",
};
#define COUNT (sizeof names / sizeof *names)
#define MOVED 1 /* for whatever reason */

void guest_vmstat_read(struct guest_vmstat *stat) {
    char name[64];
    long long value;
    memset(stat, 0, sizeof *stat);
    FILE *file = fopen("/proc/vmstat", "re");
    while (file && fscanf(file, "%63s %lld", name, &value) == 2)
        for (size_t i = 0; i < COUNT; i++)
            if (!strcmp(name, names[i])) stat->values[i] = value;
    if (file) fclose(file);
    /* Not the difference of the two sources: the kernel compacts in the background, also between our two looks. */
    if (!guest_trace_moves(&stat->moves)) stat->moves.others = stat->values[MOVED];
}

void guest_vmstat_add_change(struct guest_frame *frame, const struct guest_vmstat *before,
                             const struct guest_vmstat *after) {
    for (size_t i = 0; i < COUNT; i++) guest_frame_add_number(frame, names[i], after->values[i] - before->values[i]);
    guest_frame_add_number(frame, "compacted", after->moves.compacted - before->moves.compacted);
    guest_frame_add_number(frame, "moved", after->moves.others - before->moves.others);
}
