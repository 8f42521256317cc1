#include <stdio.h>
#include <string.h>

#include "guest.h"

static const char *const names[] = {
    "numa_pages_migrated", "pgmigrate_success", "numa_hint_faults", "numa_hint_faults_local", "numa_pte_updates", "pgfault",
};
#define COUNT (sizeof names / sizeof *names)

void vmstat_read(struct vmstat *stat) {
    char name[64];
    long long value;
    memset(stat, 0, sizeof *stat);
    FILE *file = fopen("/proc/vmstat", "re");
    while (file && fscanf(file, "%63s %lld", name, &value) == 2)
        for (size_t i = 0; i < COUNT; i++)
            if (!strcmp(name, names[i]))
                stat->values[i] = value;
    if (file)
        fclose(file);
}

void vmstat_add_change(struct frame *frame, const struct vmstat *before, const struct vmstat *after) {
    for (size_t i = 0; i < COUNT; i++)
        frame_add_number(frame, names[i], after->values[i] - before->values[i]);
}
