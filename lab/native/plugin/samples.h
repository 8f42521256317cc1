/*
 * The virtual machine's memory sampler: what PEBS and IBS are to real machines. The plugin writes one in so many
 * user accesses into a ring for each vcpu, in memory that the guest sees as a PCI device (ivshmem); the agent in the guest
 * reads them there. Each ring has one writer and one reader; both sides are built from this file.
 */
#ifndef NUMAPLAN_LAB_SAMPLES_H
#define NUMAPLAN_LAB_SAMPLES_H

#include <stdint.h>

#define SAMPLES_MAGIC UINT64_C(0x31706d617362616c) /* "labsamp1" */
#define SAMPLES_STORE 1u                           /* of `flags` */
#define SAMPLES_CACHED 2u                          /* the cpu's own caches had it; only where they are modelled */

struct lab_sample {
    uint64_t time_ns; /* the host's CLOCK_MONOTONIC */
    uint64_t task;    /* the guest kernel's address of it */
    uint64_t address, code;
    uint32_t period; /* accesses that it stands for */
    uint16_t cpu;
    uint8_t node, flags;
};

struct lab_samples_ring {
    uint64_t head, lost; /* written by the plugin: records ever put in, and those that found it full */
    uint64_t switches;   /* written by the plugin: from task to task, ever; read by the host, as a pulse */
    uint64_t unused[5];
    uint64_t tail; /* written by the guest: records ever taken out */
    uint64_t unused_too[7];
};

struct lab_samples_head {
    uint64_t magic;
    uint32_t vcpus, ring_records; /* the latter a power of two */
    uint64_t period;              /* written by the guest; 0: no samples */
    uint64_t time_ns, task;       /* answer to MARK_SAMPLER: the host's time, and the task that asked */
    uint64_t unused[3];
    struct lab_samples_ring rings[]; /* then, from the next page on, vcpus * ring_records records */
};

#define SAMPLES_PAGE 4096u

static inline uint64_t lab_samples_head_bytes(uint64_t vcpus) {
    uint64_t bytes = sizeof(struct lab_samples_head) + vcpus * sizeof(struct lab_samples_ring);
    return (bytes + SAMPLES_PAGE - 1) / SAMPLES_PAGE * SAMPLES_PAGE;
}

static inline struct lab_sample *lab_samples_of(struct lab_samples_head *head, unsigned vcpu) {
    struct lab_sample *first = (struct lab_sample *)(void *)((char *)head + lab_samples_head_bytes(head->vcpus));
    return first + (uint64_t)vcpu * head->ring_records;
}

#endif
