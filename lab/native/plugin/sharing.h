/*
 * Threads that share a cpu, and how long they wait for each other, in their accesses.
 *
 * Whether a task could have run while another did is the kernel's knowledge. Seen from here: in a stretch of time
 * in which several tasks made accesses on a cpu, each waits for the others as long as they run, but no longer than it
 * runs itself (turns are fair), and only as far as the cpu was busy. One that only looks whether it may go on (polls.h)
 * loses nothing meanwhile; who works beside it does.
 */
#ifndef NUMAPLAN_LAB_SHARING_H
#define NUMAPLAN_LAB_SHARING_H

#include "rows.h"

void lab_sharing_leave(unsigned vcpu); /* the vcpu goes on with another task than that of its row */
void lab_sharing_enter(unsigned vcpu); /* its row is now that of the other */
void lab_sharing_reset(void);
void lab_sharing_finish(void); /* book what is open; no task of the program runs */

#endif
