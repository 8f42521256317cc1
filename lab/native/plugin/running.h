/* Which tasks could run, of a recording: now and then those are written down that have a vcpu or wait for one. */
#ifndef NUMAPLAN_LAB_RUNNING_H
#define NUMAPLAN_LAB_RUNNING_H

#include <stdbool.h>

bool lab_running_start(const char *directory); /* false: no file */
void lab_running_check(void);                  /* by a vcpu of which a turn ends: a look, if one is due */
int lab_running_finish(void);                  /* errno of what could not be written */

#endif
