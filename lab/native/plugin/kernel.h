/* What is watched of the guest's kernel: which task each cpu runs, which wait for one, when tasks end, and which pages it
 * gives away. */
#ifndef NUMAPLAN_LAB_KERNEL_H
#define NUMAPLAN_LAB_KERNEL_H

#include "qemu_plugin.h"

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_HALF (UINT64_C(1) << 63)

extern struct lab_kernel {
    int api; /* of the QEMU that runs */
    bool cached; /* caches are modelled */
    uint64_t queued_at; /* offset in a task of the time since which it waits for a cpu; 0: not watched */
    volatile bool counting; /* written by the agent's vcpu while the others run kernel code or idle */
} lab_kernel;

void lab_kernel_add_stage_code(uint64_t address); /* of a task that ends or becomes another program */
void lab_kernel_watch(const struct qemu_plugin_tb *block, size_t instructions); /* some of its code */

#endif
