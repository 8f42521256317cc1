/* The chain of calls above an allocation, logged once for all blocks that have it. */
#ifndef NUMAPLAN_CHAIN_H
#define NUMAPLAN_CHAIN_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Its number, from 1; 0: none is known, or there are too many. */
uint32_t np_chain(void);
void np_chains_forget(void); /* in a forked child: its log is another */

#pragma GCC visibility pop
#endif
