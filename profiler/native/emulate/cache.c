/* The cache model: private L1 and L2 for each thread, an L3 for each domain of cpus, MESI-like sharing.
 *
 * L1 is in L2. A line is `owned` by the private cache that wrote it last; a write by anybody else takes it
 * out of all other caches, a read by somebody else ends the ownership. A domain is a node or, where several
 * L3s share a node, one of these. `shared` knows which slots may hold a line (evictions from private caches
 * are silent). An inclusive L3 is just that; else `shared` is a directory with room for more, and the L3
 * (`data`) holds what left the L2s. A page's home is the node that touched it first, and its set of
 * domains tells which others need to be asked at all.
 *
 * Only the simplest hit, the most recent line of an L1 set, is decided by the caller (accesses.c).
 */
#include "sets.h"

#include <stdlib.h>
#include <string.h>

static struct em_cache *shared; /* of each domain: which lines are anywhere in it */
static struct em_cache *data;   /* of each domain: what its L3 itself holds, when that is not the same */
static int32_t model_lock;   /* free schedule only: under the fair one, the turn is the lock */

static void model_lock_take(void) {
    while (!em_options.fair && __atomic_exchange_n(&model_lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

static void model_lock_give(void) {
    if (!em_options.fair) __atomic_store_n(&model_lock, 0, __ATOMIC_RELEASE);
}

/* In a forked child: whoever held it is not there. */
void em_cache_forked(void) { model_lock = 0; }

/* The pages were unmapped. */
void em_cache_forget_pages(uint64_t start, uint64_t bytes) {
    model_lock_take();
    em_pages_forget(start, bytes);
    model_lock_give();
}

/* Sets of a directory of 16 ways with twice the room for all that a domain's caches can hold. */
static uint32_t directory_sets(void) {
    uint64_t cpus = (em_options.cpus + em_options.domains - 1) / em_options.domains, sets = 512;
    uint64_t lines = (uint64_t)em_options.l3_sets * em_options.l3_ways + cpus * em_options.l2_sets * em_options.l2_ways;
    while (sets * 8 < lines && sets < 1 << 24) sets *= 2;
    return (uint32_t)sets;
}

bool em_cache_init(void) {
    uint32_t sets = em_options.inclusive ? em_options.l3_sets : directory_sets();
    uint32_t ways = em_options.inclusive ? em_options.l3_ways : 16;
    shared = calloc(em_options.domains, sizeof *shared);
    data = em_options.inclusive ? NULL : calloc(em_options.domains, sizeof *data);
    bool made = shared && (data || em_options.inclusive) && em_pages_init();
    for (uint32_t i = 0; made && i < em_options.domains; i++)
        made = em_cache_make(&shared[i], sets, ways, true) &&
               (!data || em_cache_make(&data[i], em_options.l3_sets, em_options.l3_ways, false));
    return made;
}

/* Private caches for a thread: those of the slot's previous thread, emptied, or new ones. */
bool em_cache_attach(struct em_thread *t, const struct em_thread *previous) {
    size_t l1_bytes = ((size_t)em_options.l1_sets << em_options.l1_shift) * sizeof *t->l1;
    if (previous == NULL) {
        t->l1 = em_zeroed(l1_bytes);
        return t->l1 && em_cache_make(&t->l2, em_options.l2_sets, em_options.l2_ways, false);
    }
    t->l1 = previous->l1;
    t->l2 = previous->l2;
    memset(t->l1, 0, l1_bytes);
    memset(t->l2.tags, 0, (size_t)em_options.l2_sets * t->l2.stride * sizeof *t->l2.tags);
    memset(t->l2.used, 0, em_options.l2_sets * sizeof *t->l2.used);
    memset(t->l2.owned, 0, em_options.l2_sets * sizeof *t->l2.owned);
    return true;
}

static inline uint64_t *l1_set(const struct em_thread *t, uint64_t line) {
    return t->l1 + ((line & (em_options.l1_sets - 1)) << em_options.l1_shift);
}

/* Take a line out of a thread's L1, or only end its ownership there. */
static void l1_drop(struct em_thread *t, uint64_t line, bool keep) {
    uint64_t *set = l1_set(t, line);
    for (uint32_t way = 0; way < em_options.l1_ways; way++)
        if (set[way] >> 1 == line) set[way] = keep ? line << 1 : 0;
}

/* The same in its L1 and L2; true if it had the line (keep: if it owned it). */
static bool private_drop(struct em_thread *t, uint64_t line, bool keep) {
    uint32_t set = (uint32_t)line & t->l2.set_mask;
    unsigned way = find(&t->l2, set, tag_of(&t->l2, line));
    if (way == NO_WAY) return false;
    bool owned = t->l2.owned[set] >> way & 1;
    set_owned(&t->l2, set, way, false);
    if (!keep) empty_way(&t->l2, set, way);
    if (!keep || owned) l1_drop(t, line, keep);
    return owned || !keep;
}

/* private_drop for every slot in `sharers` but the given one, in one domain. */
static bool sharers_drop(uint64_t sharers, uint32_t domain, const struct em_thread *but, uint64_t line, bool keep) {
    bool any = false;
    for (; sharers; sharers &= sharers - 1)
        for (uint32_t slot = (uint32_t)__builtin_ctzll(sharers); slot < em_thread_slots(); slot += 64) {
            struct em_thread *other = em_thread_at(slot);
            if (other && other != but && other->domain == domain) any |= private_drop(other, line, keep);
        }
    return any;
}

/* Whether a line that `shared` knows is anywhere in the domain: it may have left silently. */
static bool domain_has(uint64_t sharers, uint32_t domain, uint64_t line) {
    if (data == NULL || line_touch(&data[domain], line)) return true;
    for (; sharers; sharers &= sharers - 1)
        for (uint32_t slot = (uint32_t)__builtin_ctzll(sharers); slot < em_thread_slots(); slot += 64) {
            const struct em_thread *t = em_thread_at(slot);
            if (t && t->domain == domain && way_of(&t->l2, line) != NO_WAY) return true;
        }
    return false;
}

/* What other domains had of a line; NEAR: dirty, on the same node. */
enum remote { REMOTE_NONE, REMOTE_CLEAN, REMOTE_NEAR, REMOTE_DIRTY };

/* Ask the other domains that know the page. A store takes the line from them, a load ends its ownership there. */
static enum remote remote_drop(struct em_thread *t, const struct em_page *page, uint64_t line, bool store) {
    enum remote found = REMOTE_NONE;
    uint64_t others = page->domains & ~(em_options.domains > 48 ? 0 : UINT64_C(1) << t->domain);
    for (uint32_t domain = 0; others && domain < em_options.domains; domain++) {
        struct em_cache *c = &shared[domain];
        uint32_t set = (uint32_t)line & c->set_mask;
        unsigned way;
        if (domain == t->domain || !(others >> domain % 48 & 1) || (way = find(c, set, tag_of(c, line))) == NO_WAY)
            continue;
        uint64_t *sharers = &c->sharers[(size_t)set * c->stride + way];
        bool there = domain_has(*sharers, domain, line), owned = there && c->owned[set] >> way & 1;
        enum remote had =
            owned ? (em_options.domain_nodes[domain] == t->node ? REMOTE_NEAR : REMOTE_DIRTY) : (enum remote)there;
        if (store || owned) sharers_drop(*sharers, domain, t, line, !store);
        set_owned(c, set, way, false);
        if (store) {
            empty_way(c, set, way);
            *sharers = 0;
            if (data) line_drop(&data[domain], line);
        }
        found = had > found ? had : found;
    }
    return found;
}

/* Make the domain hold the line for this thread alone (store) or too (load); the level that had it. */
static enum em_level shared_access(struct em_thread *t, uint64_t line, bool store) {
    struct em_cache *c = &shared[t->domain];
    uint32_t set = (uint32_t)line & c->set_mask, tag = tag_of(c, line);
    const uint64_t me = UINT64_C(1) << t->slot % 64;
    struct em_page *page = em_page_touch(line >> (PAGE_SHIFT - LINE_SHIFT), t->node, t->domain);
    uint64_t *base = c->sharers + (size_t)set * c->stride;
    unsigned way = find(c, set, tag);
    enum em_level level = page->home == (t->node & 0x7fff) ? LEVEL_LOCAL : LEVEL_REMOTE;
    enum remote remote = REMOTE_NONE;
    bool local = false;

    if (way == NO_WAY || store) remote = remote_drop(t, page, line, store);
    if (way != NO_WAY) {
        level = domain_has(base[way], t->domain, line) ? LEVEL_L3 : level;
        bool owned = c->owned[set] >> way & 1;
        if ((store || owned) && base[way] & ~(em_thread_slots() > 64 ? 0 : me))
            local = sharers_drop(base[way], t->domain, t, line, !store);
        base[way] = store ? me : base[way] | me;
    } else {
        way = victim(c, set);
        if (c->tags[(size_t)set * c->stride + way]) {
            uint64_t old = line_in(c, set, way);
            sharers_drop(base[way], t->domain, NULL, old, false);
            if (data) line_drop(&data[t->domain], old);
        }
        c->tags[(size_t)set * c->stride + way] = tag;
        set_owned(c, set, way, false);
        base[way] = me;
    }
    touch(c, set, way);
    if (store) set_owned(c, set, way, true);
    t->record.coherence += local || remote >= REMOTE_NEAR || (store && remote == REMOTE_CLEAN);
    return remote == REMOTE_DIRTY ? LEVEL_REMOTE_CACHE : remote == REMOTE_NEAR ? LEVEL_L3 : level;
}

static void l2_insert(struct em_thread *t, uint32_t set, uint64_t line, bool store) {
    struct em_cache *c = &t->l2;
    unsigned way = victim(c, set);
    if (c->tags[(size_t)set * c->stride + way]) {
        l1_drop(t, line_in(c, set, way), false);
        if (data) line_insert(&data[t->domain], line_in(c, set, way));
    }
    c->tags[(size_t)set * c->stride + way] = tag_of(c, line);
    set_owned(c, set, way, store);
    touch(c, set, way);
}

/* A line that L1 does not have. `owned`: whether the thread may write it without asking, on return. */
static enum em_level private_miss(struct em_thread *t, uint64_t line, bool store, bool *owned) {
    uint32_t set = (uint32_t)line & t->l2.set_mask;
    unsigned way = find(&t->l2, set, tag_of(&t->l2, line));
    struct em_thread_record *r = &t->record;
    *owned = store;
    r->l1_misses++;
    if (way == NO_WAY) {
        r->l2_misses++;
        enum em_level level = shared_access(t, line, store);
        l2_insert(t, set, line, store);
        r->llc_local += level == LEVEL_LOCAL;
        r->llc_remote += level == LEVEL_REMOTE;
        r->remote_cache += level == LEVEL_REMOTE_CACHE;
        return level;
    }
    touch(&t->l2, set, way);
    *owned = t->l2.owned[set] >> way & 1;
    if (!store || *owned) return LEVEL_L2;
    uint64_t before = r->coherence;
    enum em_level level = shared_access(t, line, true);
    set_owned(&t->l2, set, way, true);
    *owned = true;
    return r->coherence != before ? level : LEVEL_L2;
}

/* A write to a line that L1 has without owning it. */
static enum em_level upgrade(struct em_thread *t, uint64_t line) {
    uint32_t set = (uint32_t)line & t->l2.set_mask;
    unsigned way = find(&t->l2, set, tag_of(&t->l2, line));
    uint64_t before = t->record.coherence;
    enum em_level level = shared_access(t, line, true);
    if (way != NO_WAY) set_owned(&t->l2, set, way, true);
    return t->record.coherence != before ? level : LEVEL_L1;
}

static enum em_level access_line(struct em_thread *t, uint64_t line, bool store) {
    uint64_t *set = l1_set(t, line), wanted = line << 1 | 1;
    uint32_t way = 0;
    while (way < em_options.l1_ways && (set[way] ^ wanted) > 1) way++;
    bool hit = way < em_options.l1_ways, owned = hit && set[way] == wanted;
    enum em_level level = LEVEL_L1;
    if (!hit) {
        level = private_miss(t, line, store, &owned);
        /* What left L2 for this line may have left room here. */
        for (way = 0; way < em_options.l1_ways - 1 && set[way]; way++);
    } else if (store && !owned) {
        level = upgrade(t, line);
        owned = true;
    }
    for (; way > 0; way--) set[way] = set[way - 1];
    set[0] = line << 1 | owned;
    return level;
}

enum em_level em_cache_miss(struct em_thread *t, uint64_t line, bool store) {
    model_lock_take();
    enum em_level level = access_line(t, line, store);
    model_lock_give();
    return level;
}
