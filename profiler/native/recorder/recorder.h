/* The parts of the recorder: recorder.c logs what is seen, emulated.c keeps an emulated program's children emulated,
 * cpus.c tells an emulated program of the cpus that it is to see.
 */
#ifndef NUMAPLAN_RECORDER_H
#define NUMAPLAN_RECORDER_H

#include "hooks.h"

#pragma GCC visibility push(hidden)

void np_emulated_start(void);
bool np_is_emulated(void); /* remembers how this process was started */
size_t np_emulated_room(struct np_exec *call);
void np_emulated_change(struct np_exec *call, void *room);

/* ---- monitoring.c ---- */

void np_monitoring_end(void); /* the process ends: let Open MPI write what the rank sent */

#pragma GCC visibility pop
#endif
