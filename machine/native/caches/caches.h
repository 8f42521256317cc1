/*
 * A model of a machine's data caches, which says where an access finds its line and who loses it.
 *
 * Compiled into what sees every access: the emulation (a core is a thread) and the lab's virtual machine (a core is a
 * cpu). It knows lines and cores; whose memory a page is, is its user's to say (caches_page).
 */
#ifndef NUMAPLAN_CACHES_H
#define NUMAPLAN_CACHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_SHIFT 6
#define PAGE_SHIFT 12
#define PAGE_LINES (1 << (PAGE_SHIFT - LINE_SHIFT))
#define CACHES_MAX_CORES 65536

/* Positions in LEVELS of profiler/trace/schema.py. */
enum cache_level {
    LEVEL_UNKNOWN = 0,
    LEVEL_L1 = 1,
    LEVEL_L2 = 3,
    LEVEL_L3 = 4,
    LEVEL_LOCAL = 5,
    LEVEL_REMOTE = 6,
    LEVEL_REMOTE_CACHE = 7
};

/* sets: a power of two; ways: at most 32. */
struct cache_shape {
    uint32_t sets, ways;
};

/* A domain: the cpus of one L3. */
struct caches_options {
    struct cache_shape l1, l2, l3;
    uint32_t l1_shift; /* log2 of the room for an L1 set: set by caches_init */
    uint32_t cpus, *cpu_nodes, *cpu_domains; /* of each cpu */
    uint32_t domains, *domain_nodes;
    bool inclusive;               /* the L3 has what the L2s have */
    bool locked;                  /* cores run at the same time, so the model takes a lock */
};

/* One private or shared level: set-associative, bit pseudo-LRU. Tags are 0 when empty. */
struct cache {
    uint32_t *tags;    /* [sets][stride] */
    uint64_t *sharers; /* [sets][stride], shared caches only: which slots may hold the line */
    uint32_t *used;    /* [sets], one bit a way: touched lately */
    uint32_t *owned;   /* [sets], one bit a way: written here, by nobody else since */
    uint32_t set_mask, set_shift, ways, stride;
};

struct cache_counts {
    uint64_t l1_misses, l2_misses, llc_local, llc_remote, remote_cache;
    uint64_t coherence; /* accesses that took a line from another core */
    uint64_t within; /* of these, from cores with the same L3 alone */
};

struct cache_core {
    uint64_t *l1; /* [sets][room for a set] line<<1 | owned, most recent first; 0 when empty */
    struct cache l2;
    uint32_t slot, node, domain;
    struct cache_counts *counts;
    uint64_t *moved; /* [slots] lines taken from each other core; NULL: not counted */
    bool kept; /* at the last caches_miss: its L3 has all that other cores had of the line, and none lost it */
};

/* What the model keeps of a page for its user. */
struct cache_page {
    uint64_t number; /* + 1; 0 when empty */
    uint64_t domains : 48, home : 16; /* L3s it went through, modulo 48; index of the node whose memory it is */
    uint32_t index; /* of the user's: pages have low ones (reach.h) */
};

extern struct caches_options caches;

/* One option of the model (options.c); false: there is none of that name, or its value is none. */
bool caches_option(const char *name, const char *value);

/* After the last: which L3s there are, and their nodes; without a list of them, one a node. False: it does not fit. */
bool caches_settle(void);

bool caches_init(void);

/* A core's private caches, empty; those of the slot's previous core are taken over. False: no memory. */
bool caches_attach(struct cache_core *core);

/* As if nothing had been accessed; no core may do so meanwhile. */
void caches_empty(void);

/* Another thread comes to a core: as if its L1 had nothing, and no line were its own; asked by who runs it. */
void caches_leave(const struct cache_core *core);

/* In a forked child: none of the parent's cores is there, nor who held the lock. */
void caches_forked(void);

/* An access that the L1's most recent line does not answer (caches_hit); returns the level that had the line. */
enum cache_level caches_miss(struct cache_core *core, uint64_t line, bool store);

/* A page is given back, or given to another use: its lines are in no cache. number: of the page, as its lines have it;
 * with the lock held. */
void caches_forget(const struct cache_page *page, uint64_t number);

void caches_wait(void); /* for the lock */
void caches_give(void);

/* The user's: the page of a line that a core now touches. Called with the lock held. */
struct cache_page *caches_page(const struct cache_core *core, uint64_t line);

/* Memory that costs nothing until it is used; NULL: none. */
void *caches_zeroed(size_t bytes);

static inline void caches_lock(void) {
    if (__builtin_expect(caches.locked, 0)) caches_wait();
}

static inline void caches_unlock(void) {
    if (__builtin_expect(caches.locked, 0)) caches_give();
}

static inline void caches_page_touched(struct cache_page *page, uint32_t domain) {
    page->domains |= UINT64_C(1) << domain % 48;
}

/* The simplest hit, decided without a call: the most recent line of an L1 set, owned if it is to be written. */
static inline bool caches_hit(const struct cache_core *core, uint64_t line, bool store) {
    uint64_t first = core->l1[(line & (caches.l1.sets - 1)) << caches.l1_shift];
    return (first ^ (line << 1 | 1)) <= (uint64_t)!store;
}

/* The same of its two most recent lines, where cores take turns and an L1 has two ways. */
static inline bool caches_hit_two(struct cache_core *core, uint64_t line, bool store) {
    uint64_t *set = core->l1 + ((line & (caches.l1.sets - 1)) << caches.l1_shift), first = set[0], second = set[1];
    if ((first ^ (line << 1 | 1)) <= (uint64_t)!store) return true;
    if (caches.locked || (second ^ (line << 1 | 1)) > (uint64_t)!store) return false;
    set[0] = second;
    set[1] = first;
    return true;
}

/* The same of the other lines of the set, one of which becomes the most recent. Where cores run at the same time it is
 * left to caches_miss. */
static inline bool caches_hit_later(struct cache_core *core, uint64_t line, bool store) {
    uint64_t *set = core->l1 + ((line & (caches.l1.sets - 1)) << caches.l1_shift), wanted = line << 1 | 1, found;
    uint32_t way = 1;
    while (way < caches.l1.ways && (set[way] ^ wanted) > (uint64_t)!store) way++;
    if (way >= caches.l1.ways || caches.locked) return false;
    for (found = set[way]; way > 0; way--) set[way] = set[way - 1];
    set[0] = found;
    return true;
}

#endif
