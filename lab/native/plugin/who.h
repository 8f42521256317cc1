/* Numbers for the guest's tasks, each as long as it runs one program, in the order of their first accesses,
 * or of what the kernel first copied for them. */
#ifndef NUMAPLAN_LAB_WHO_H
#define NUMAPLAN_LAB_WHO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* As lab/recording/exact.py reads it, one for each number, from 1 on. */
struct lab_who {
    uint64_t task; /* the kernel's address of it */
    uint64_t time_ns; /* of the first of these, by the host's CLOCK_MONOTONIC */
};

/* Called with one lock held. */
uint32_t lab_who_find(uint64_t task, uint64_t now); /* a new one, where there is none; 0: no memory */
uint32_t lab_who_known(uint64_t task); /* 0: none that lives */
void lab_who_join(uint32_t number, unsigned process); /* it is one of that process's (part.h) */
unsigned lab_who_process(uint32_t number); /* 0: not known */
void lab_who_end(uint64_t task); /* it has another number from now on, if any */
uint32_t lab_who_count(void);
void lab_who_restart(void);
bool lab_who_write(FILE *file);

#endif
