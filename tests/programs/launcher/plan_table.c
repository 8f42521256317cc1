/* Feeds the parser of plan tables (compiled in, with sanitizers) with what stdin holds: tables, each after its size.
 * Prints how many were taken; every accessor is used on those.
 */
#include "enforce.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_odd(const struct pt_process *part, const struct pt_process *actual) {
    (void)actual;
    return part->number % 2;
}

static uint64_t touch(const struct pt_table *table) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < table->header->threads; i++) {
        const struct pt_thread *thread = &table->threads[i];
        for (uint32_t c = 0; c < thread->cpus; c++) sum += table->cpus[thread->first_cpu + c];
        sum += pt_find_thread(table, thread->process, thread->path) != NULL;
        if (thread->pool) sum += table->threads[thread->pool - 1].cpus;
        const uint32_t *nodes = NULL;
        for (uint32_t count = pt_memory_nodes(table, thread->process, &nodes), n = 0; n < count; n++) sum += nodes[n];
    }
    for (uint32_t i = 0; i < table->header->regions; i++) {
        const struct pt_region *region = &table->regions[i];
        for (uint32_t r = 0; r < region->runs; r++) sum += table->runs[region->first_run + r].node;
        sum += pt_find_region(table, region->process, region->thread, region->sequence) != NULL;
        sum += pt_find_rule(table, region) != NULL;
        for (uint32_t r = 0; r < region->runs; r++)
            sum += pt_offset_in(table, region, table->runs[region->first_run + r].offset, (uint64_t)1 << 56);
    }
    for (uint32_t i = 0; i < table->header->processes; i++) {
        struct pt_process actual = table->processes[i];
        for (uint32_t more = 0; more < 4; more++, actual.number++) sum += pt_plays(table, &actual, is_odd);
        actual.parent = table->processes[0].parent;
        sum += pt_plays(table, &actual, is_odd);
    }
    return sum;
}

int main(void) {
    uint32_t bytes;
    unsigned taken = 0, all = 0;
    uint64_t sum = 0;
    while (fread(&bytes, sizeof bytes, 1, stdin) == 1) {
        char *data = malloc(bytes + 1u);
        if (fread(data, 1, bytes, stdin) != bytes) return 2;
        struct pt_table table;
        all++;
        if (pt_check(data, bytes, &table)) taken++, sum += touch(&table);
        free(data);
    }
    printf("%u of %u, %llu\n", taken, all, (unsigned long long)sum);
    return 0;
}
