/* Who called, by the tables that compilers write for exceptions (.eh_frame).
 *
 * Not by libgcc's unwinder: that takes locks, and reads wherever a wrong table sends it. Here nothing is read but the
 * segment of the table and the thread's own stack above the point where it starts; what is not plain ends the walk.
 */
#ifndef NUMAPLAN_UNWIND_H
#define NUMAPLAN_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct np_frame { /* registers as they are in a function */
    uintptr_t pc, sp, fp;
};

struct np_bounds { /* of memory that may be read */
    uintptr_t low, high;
};

/* The frame of who called this one's function; false: it is not known. */
bool np_unwind(struct np_frame *frame, struct np_bounds stack);

#pragma GCC visibility pop
#endif
