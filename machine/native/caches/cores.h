/* Which caches and cores there are: written by cores.c, asked by model.c at each miss. */
#ifndef NUMAPLAN_CACHES_CORES_H
#define NUMAPLAN_CACHES_CORES_H

#include "sets.h"

extern struct cache *caches_shared; /* of each domain: which lines are anywhere in it */
extern struct cache *caches_data;   /* of each domain: what its L3 itself holds; NULL: the same */
extern struct cache_core *caches_core_of[CACHES_MAX_CORES]; /* by slot */
extern uint32_t caches_slot_count;                          /* one more than the highest that was ever in use */

static inline struct cache_core *caches_core_at(uint32_t slot) {
    return __atomic_load_n(&caches_core_of[slot], __ATOMIC_ACQUIRE);
}

static inline uint32_t caches_slots(void) { return __atomic_load_n(&caches_slot_count, __ATOMIC_ACQUIRE); }

#endif
