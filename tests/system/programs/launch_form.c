/* Feeds the library's form parser (compiled in, with sanitizers) with what stdin holds: forms, each after its size.
 * Prints how many were taken; every accessor is used on those.
 */
#include "enforce.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t touch(const struct nf_form *form) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < form->header->threads; i++) {
        const struct nf_thread *thread = &form->threads[i];
        for (uint32_t c = 0; c < thread->cpus; c++) sum += form->cpus[thread->first_cpu + c];
        sum += nf_find_thread(form, thread->process, thread->path) != NULL;
    }
    for (uint32_t i = 0; i < form->header->regions; i++) {
        const struct nf_region *region = &form->regions[i];
        for (uint32_t r = 0; r < region->runs; r++) sum += form->runs[region->first_run + r].node;
        sum += nf_find_region(form, region->process, region->thread, region->sequence) != NULL;
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
        struct nf_form form;
        all++;
        if (nf_check(data, bytes, &form)) taken++, sum += touch(&form);
        free(data);
    }
    printf("%u of %u, %llu\n", taken, all, (unsigned long long)sum);
    return 0;
}
