/* Blocks that rules of the plan have placed and that live: any number may come and go, so that a table by their number in
 * the plan would not do. Which of them are looked at, and what is logged of them: of ever more ever fewer.
 *
 * Lock-free, as the table of all large blocks (preload/live.c): an address lives once, so nobody adds the same one twice
 * at a time.
 */
#include "enforce.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Each block may be a mapping of its own to the kernel, which allows a process some 65,000. */
enum { SLOTS = 1 << 15, MOST = 1 << 14, PROBES = 256, ALWAYS = 8 };
enum { NEVER, REMOVED, BEING_ADDED };

static struct slot {
    _Atomic uintptr_t address; /* published last */
    _Atomic size_t bytes;
    _Atomic uint32_t number;
} slots[SLOTS];
static _Atomic uint32_t living;

static struct rule { /* what was done for one: by its place among the rules */
    _Atomic uint64_t blocks, bytes;
    _Atomic uint64_t gone;
    _Atomic uint32_t error;
} *rules;

static _Atomic uint64_t made, planned_part, pieces; /* memory: bytes, bytes, how many */

bool nf_blocks_open(uint32_t count) {
    rules = calloc((size_t)count + 1, sizeof *rules);
    return rules;
}

void nf_blocks_forked(uint32_t count) {
    for (uint32_t i = 0; i < SLOTS && atomic_load(&living); i++) atomic_store(&slots[i].address, NEVER);
    atomic_store(&living, 0);
    memset(rules, 0, ((size_t)count + 1) * sizeof *rules);
    made = planned_part = pieces = 0;
}

static size_t first_slot(uintptr_t address) { return (address >> 4) * 0x9E3779B97F4A7C15ull >> 49; }

bool nf_block_add(uintptr_t address, size_t bytes, uint32_t number) {
    if (atomic_fetch_add(&living, 1) < MOST) {
        for (unsigned probe = 0; probe < PROBES; probe++) {
            struct slot *slot = &slots[(first_slot(address) + probe) % SLOTS];
            uintptr_t found = atomic_load_explicit(&slot->address, memory_order_relaxed);
            if (found > REMOVED || !atomic_compare_exchange_strong(&slot->address, &found, BEING_ADDED)) continue;
            atomic_store_explicit(&slot->bytes, bytes, memory_order_relaxed);
            atomic_store_explicit(&slot->number, number, memory_order_relaxed);
            atomic_store(&slot->address, address);
            return true;
        }
    }
    atomic_fetch_sub(&living, 1);
    return false;
}

static bool take(struct slot *slot, uintptr_t address, size_t *bytes, uint32_t *number) {
    *bytes = atomic_load_explicit(&slot->bytes, memory_order_relaxed);
    *number = atomic_load_explicit(&slot->number, memory_order_relaxed);
    if (!atomic_compare_exchange_strong(&slot->address, &address, REMOVED)) return false;
    atomic_fetch_sub(&living, 1);
    return true;
}

bool nf_block_take(uintptr_t address, size_t *bytes, uint32_t *number) {
    if (!atomic_load_explicit(&living, memory_order_relaxed)) return false;
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct slot *slot = &slots[(first_slot(address) + probe) % SLOTS];
        uintptr_t found = atomic_load(&slot->address);
        if (found == NEVER) return false;
        if (found == address) return take(slot, address, bytes, number);
    }
    return false;
}

bool nf_block_take_any(uintptr_t *address, size_t *bytes, uint32_t *number) {
    for (uint32_t i = 0; i < SLOTS && atomic_load(&living); i++) {
        *address = atomic_load(&slots[i].address);
        if (*address > BEING_ADDED && take(&slots[i], *address, bytes, number)) return true;
    }
    return false;
}

/* ---- what is said of them ---- */

/* The first ones, then one for each doubling of their number. */
static bool is_told(uint64_t count) { return count <= ALWAYS || (count & (count - 1)) == 0; }

static void tell(uint32_t rule, uint32_t number) {
    np_log(NF_RULE_BLOCKS, np_thread_number(), atomic_load(&rules[rule].error), number,
           atomic_load(&rules[rule].blocks), atomic_load(&rules[rule].bytes), 0);
}

void nf_block_placed(uint32_t rule, uint32_t number, size_t bytes, int error) {
    if (error) atomic_store(&rules[rule].error, (uint32_t)error);
    atomic_fetch_add(&rules[rule].bytes, bytes);
    if (is_told(atomic_fetch_add(&rules[rule].blocks, 1) + 1)) tell(rule, number);
}

bool nf_block_is_looked_at(uint32_t rule) { return is_told(atomic_fetch_add(&rules[rule].gone, 1) + 1); }

static void tell_of_memory(void) {
    np_log(NF_MEMORY, np_thread_number(), 0, atomic_load(&made), atomic_load(&planned_part), 0, 0);
}

void nf_count_memory(size_t bytes, bool planned) {
    atomic_fetch_add(&made, bytes);
    if (planned) atomic_fetch_add(&planned_part, bytes);
    if (is_told(atomic_fetch_add(&pieces, 1) + 1)) tell_of_memory();
}

void nf_blocks_end(uint32_t count, uint32_t first_number) {
    for (uint32_t rule = 0; rule < count; rule++)
        if (atomic_load(&rules[rule].blocks)) tell(rule, first_number + rule);
    if (atomic_load(&pieces)) tell_of_memory();
}
