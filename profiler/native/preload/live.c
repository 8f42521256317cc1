/* Which addresses are large blocks, for free(): a small filter that stays in cache, then an exact table.
 *
 * Lock-free: an address lives once, so a slot goes free -> address -> removed by compare and swap and nobody
 * ever inserts the same address twice at a time.
 */
#include "preload.h"

enum { SLOTS = 1 << 16, FILTER = 1 << 14, PROBES = 256 };
enum { NEVER = 0, REMOVED = 1 };

static _Atomic uintptr_t slots[SLOTS];
static _Atomic uint16_t filter[FILTER];

static uint64_t mix(uintptr_t address) { return (uint64_t)(address >> 4) * 0x9E3779B97F4A7C15ull; }

bool np_live_add(uintptr_t address) {
    uint64_t key = mix(address);
    for (unsigned probe = 0; probe < PROBES; probe++) {
        _Atomic uintptr_t *slot = &slots[((key >> 40) + probe) % SLOTS];
        uintptr_t found = atomic_load_explicit(slot, memory_order_relaxed);
        if (found > REMOVED) continue;
        if (atomic_compare_exchange_strong(slot, &found, address)) {
            atomic_fetch_add(&filter[key >> 50], 1);
            return true;
        }
    }
    return false;
}

static NP_COLD bool remove_exact(uintptr_t address, uint64_t key) {
    for (unsigned probe = 0; probe < PROBES; probe++) {
        _Atomic uintptr_t *slot = &slots[((key >> 40) + probe) % SLOTS];
        uintptr_t found = atomic_load_explicit(slot, memory_order_relaxed);
        if (found == NEVER) return false;
        if (found == address && atomic_compare_exchange_strong(slot, &found, REMOVED)) {
            atomic_fetch_sub(&filter[key >> 50], 1);
            return true;
        }
    }
    return false;
}

NP_HOT bool np_live_remove(uintptr_t address) {
    uint64_t key = mix(address);
    if (!atomic_load_explicit(&filter[key >> 50], memory_order_relaxed)) return false;
    return remove_exact(address, key);
}
