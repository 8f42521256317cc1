/* The addresses of large blocks, for free(): a small filter that stays in cache, then an exact table.
 *
 * Lock-free: an address lives once, so a slot goes free -> address -> removed by compare and swap and nobody
 * ever inserts the same address twice at a time.
 */
#include "preload.h"

enum { SLOTS = 1 << 16, PROBES = 256 };
enum { NEVER = 0, REMOVED = 1 };

_Atomic uint16_t np_live_filter[NP_LIVE_FILTER];
_Atomic uintptr_t np_live_low, np_live_high = UINTPTR_MAX;
static _Atomic uintptr_t slots[SLOTS];

void np_live_none(void) {
    atomic_store(&np_live_low, UINTPTR_MAX);
    atomic_store(&np_live_high, 0);
}

void np_live_span(uintptr_t start, uintptr_t end) {
    uintptr_t low = atomic_load(&np_live_low), high = atomic_load(&np_live_high);
    while (start < low && !atomic_compare_exchange_weak(&np_live_low, &low, start)) {}
    while (end > high && !atomic_compare_exchange_weak(&np_live_high, &high, end)) {}
}

bool np_live_add(uintptr_t address) {
    np_live_span(address, address + 1);
    uint64_t key = np_live_key(address);
    for (unsigned probe = 0; probe < PROBES; probe++) {
        _Atomic uintptr_t *slot = &slots[((key >> 40) + probe) % SLOTS];
        uintptr_t found = atomic_load_explicit(slot, memory_order_relaxed);
        if (found > REMOVED) continue;
        if (atomic_compare_exchange_strong(slot, &found, address)) {
            atomic_fetch_add(&np_live_filter[key >> 50], 1);
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
            atomic_fetch_sub(&np_live_filter[key >> 50], 1);
            return true;
        }
    }
    return false;
}

bool np_live_remove(uintptr_t address) {
    uint64_t key = np_live_key(address);
    return np_live_maybe(address) && remove_exact(address, key);
}

void np_live_watch_all(void) {
    np_live_span(0, UINTPTR_MAX);
    for (unsigned i = 0; i < NP_LIVE_FILTER; i++) atomic_fetch_add(&np_live_filter[i], 1);
}
