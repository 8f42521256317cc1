/* The caches of a machine's domains, and the cores that come to them. */
#include "cores.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct cache *caches_shared, *caches_data;
struct cache_core *caches_core_of[CACHES_MAX_CORES];
uint32_t caches_slot_count;
static int32_t model_lock; /* see caches.locked */

void caches_wait(void) {
    while (__atomic_exchange_n(&model_lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

void caches_give(void) { __atomic_store_n(&model_lock, 0, __ATOMIC_RELEASE); }

void caches_forked(void) {
    memset(caches_core_of, 0, caches_slot_count * sizeof *caches_core_of);
    caches_slot_count = 0;
    model_lock = 0;
}

void *caches_zeroed(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* A directory of 16 ways with twice the room for all that a domain's caches can hold. */
static struct cache_shape directory(void) {
    uint64_t cpus = (caches.cpus + caches.domains - 1) / caches.domains, sets = 512;
    uint64_t lines = (uint64_t)caches.l3.sets * caches.l3.ways + cpus * caches.l2.sets * caches.l2.ways;
    while (sets * 8 < lines && sets < 1 << 24) sets *= 2;
    return (struct cache_shape){(uint32_t)sets, 16};
}

bool caches_init(void) {
    while (1u << caches.l1_shift < caches.l1.ways) caches.l1_shift++;
    caches_shared = calloc(caches.domains, sizeof *caches_shared);
    caches_data = caches.inclusive ? NULL : calloc(caches.domains, sizeof *caches_data);
    bool made = caches_shared && (caches_data || caches.inclusive);
    for (uint32_t i = 0; made && i < caches.domains; i++)
        made = cache_make(&caches_shared[i], caches.inclusive ? caches.l3 : directory(), true) &&
               (!caches_data || cache_make(&caches_data[i], caches.l3, false));
    return made;
}

static void empty(struct cache *cache) {
    size_t sets = (size_t)cache->set_mask + 1, lines = sets * cache->stride;
    memset(cache->tags, 0, lines * sizeof *cache->tags);
    memset(cache->used, 0, sets * sizeof *cache->used);
    memset(cache->owned, 0, sets * sizeof *cache->owned);
    if (cache->sharers) memset(cache->sharers, 0, lines * sizeof *cache->sharers);
}

static void empty_l1(const struct cache_core *core) {
    memset(core->l1, 0, ((size_t)caches.l1.sets << caches.l1_shift) * sizeof *core->l1);
}

static void empty_core(struct cache_core *core) {
    empty_l1(core);
    empty(&core->l2);
}

void caches_leave(const struct cache_core *core) {
    caches_lock();
    empty_l1(core);
    memset(core->l2.owned, 0, ((size_t)core->l2.set_mask + 1) * sizeof *core->l2.owned);
    caches_unlock();
}

void caches_empty(void) {
    caches_lock();
    for (uint32_t i = 0; i < caches.domains; i++) {
        empty(&caches_shared[i]);
        if (caches_data) empty(&caches_data[i]);
    }
    for (uint32_t slot = 0; slot < caches_slots(); slot++)
        if (caches_core_at(slot)) empty_core(caches_core_at(slot));
    caches_unlock();
}

static bool take_over(struct cache_core *core, const struct cache_core *previous) {
    core->l1 = previous->l1;
    core->l2 = previous->l2;
    empty_core(core);
    return true;
}

bool caches_attach(struct cache_core *core) {
    const struct cache_core *previous = caches_core_at(core->slot);
    size_t l1_bytes = (((size_t)caches.l1.sets << caches.l1_shift) + 1) * sizeof *core->l1; /* caches_hit_two */
    bool made = previous ? take_over(core, previous)
                         : (core->l1 = caches_zeroed(l1_bytes)) && cache_make(&core->l2, caches.l2, false);
    if (!made) return false;
    __atomic_store_n(&caches_core_of[core->slot], core, __ATOMIC_RELEASE);
    if (core->slot >= caches_slot_count) __atomic_store_n(&caches_slot_count, core->slot + 1, __ATOMIC_RELEASE);
    return true;
}
