/* Private L1 and L2 for each core, an L3 for each domain of cpus, MESI-like sharing.
 *
 * L1 is in L2. A line is `owned` by the private cache that wrote it last; a write by anybody else takes it
 * out of all other caches, a read by somebody else ends the ownership. A domain is a node or, where several
 * L3s share a node, one of these. `caches_shared` knows which slots may hold a line (evictions from private
 * caches are silent). An inclusive L3 is just that; else it is a directory with room for more, and the L3
 * (`caches_data`) holds what left the L2s. A page's set of domains tells which others need to be asked at all.
 */
#include "cores.h"

static inline uint64_t *l1_set(const struct cache_core *core, uint64_t line) {
    return core->l1 + ((line & (caches.l1.sets - 1)) << caches.l1_shift);
}

/* Take a line out of a core's L1, or only end its ownership there. */
static void l1_drop(struct cache_core *core, uint64_t line, bool keep) {
    uint64_t *set = l1_set(core, line);
    for (uint32_t way = 0; way < caches.l1.ways; way++)
        if (set[way] >> 1 == line) set[way] = keep ? line << 1 : 0;
}

/* The same in its L1 and L2; true if it had the line (keep: if it owned it). */
static bool private_drop(struct cache_core *core, uint64_t line, bool keep) {
    uint32_t set = (uint32_t)line & core->l2.set_mask;
    unsigned way = find(&core->l2, set, tag_of(&core->l2, line));
    if (way == NO_WAY) return false;
    bool owned = core->l2.owned[set] >> way & 1;
    set_owned(&core->l2, set, way, false);
    if (!keep) empty_way(&core->l2, set, way);
    if (!keep || owned) l1_drop(core, line, keep);
    return owned || !keep;
}

/* private_drop for every slot in `sharers` but the given one, in one domain; a core that lost it, or NULL. */
static const struct cache_core *sharers_drop(uint64_t sharers, uint32_t domain, const struct cache_core *but,
                                             uint64_t line, bool keep) {
    const struct cache_core *loser = NULL;
    for (; sharers; sharers &= sharers - 1)
        for (uint32_t slot = (uint32_t)__builtin_ctzll(sharers); slot < caches_slots(); slot += 64) {
            struct cache_core *other = caches_core_at(slot);
            if (other && other != but && other->domain == domain && private_drop(other, line, keep)) loser = other;
        }
    return loser;
}

/* Whether a line that `caches_shared` knows is anywhere in the domain: it may have left silently. */
static bool domain_has(uint64_t sharers, uint32_t domain, uint64_t line) {
    if (caches_data == NULL || line_touch(&caches_data[domain], line)) return true;
    for (; sharers; sharers &= sharers - 1)
        for (uint32_t slot = (uint32_t)__builtin_ctzll(sharers); slot < caches_slots(); slot += 64) {
            const struct cache_core *core = caches_core_at(slot);
            if (core && core->domain == domain && way_of(&core->l2, line) != NO_WAY) return true;
        }
    return false;
}

/* What other domains had of a line; NEAR: dirty, on the same node. */
enum remote { REMOTE_NONE, REMOTE_CLEAN, REMOTE_NEAR, REMOTE_DIRTY };

/* The nearest to a core that can be told of what a domain held: one that had it itself, else one of the domain's. */
static const struct cache_core *holder(const struct cache_core *loser, uint32_t domain) {
    for (uint32_t slot = 0; !loser && slot < caches_slots(); slot++) {
        const struct cache_core *core = caches_core_at(slot);
        if (core && core->domain == domain) loser = core;
    }
    return loser;
}

/* Ask the other domains that know the page. A store takes the line from them, a load ends its ownership there.
 * `from`: a core of the domain that had most of it. */
static enum remote remote_drop(struct cache_core *core, const struct cache_page *page, uint64_t line, bool store,
                               const struct cache_core **from) {
    enum remote found = REMOTE_NONE;
    const struct cache_core *loser = NULL;
    uint64_t others = page->domains & ~(caches.domains > 48 ? 0 : UINT64_C(1) << core->domain);
    for (uint32_t domain = 0; others && domain < caches.domains; domain++) {
        struct cache *c = &caches_shared[domain];
        uint32_t set = (uint32_t)line & c->set_mask;
        unsigned way;
        if (domain == core->domain || !(others >> domain % 48 & 1) || (way = find(c, set, tag_of(c, line))) == NO_WAY)
            continue;
        uint64_t *sharers = &c->sharers[(size_t)set * c->stride + way];
        bool there = domain_has(*sharers, domain, line), owned = there && c->owned[set] >> way & 1;
        enum remote had =
            owned ? (caches.domain_nodes[domain] == core->node ? REMOTE_NEAR : REMOTE_DIRTY) : (enum remote)there;
        if (store || owned) loser = sharers_drop(*sharers, domain, core, line, !store);
        if (had > found && core->moved) *from = holder(loser, domain);
        set_owned(c, set, way, false);
        if (store) {
            empty_way(c, set, way);
            *sharers = 0;
            if (caches_data) line_drop(&caches_data[domain], line);
        }
        found = had > found ? had : found;
    }
    return found;
}

/* The line in a way leaves the domain. */
static void evict(uint32_t domain, uint32_t set, unsigned way) {
    struct cache *c = &caches_shared[domain];
    uint64_t line = line_in(c, set, way);
    sharers_drop(c->sharers[(size_t)set * c->stride + way], domain, NULL, line, false);
    if (caches_data) line_drop(&caches_data[domain], line);
}

/* Make the domain hold the line for this core alone (store) or too (load); the level that had it. */
static enum cache_level shared_access(struct cache_core *core, uint64_t line, bool store) {
    struct cache *c = &caches_shared[core->domain];
    uint32_t set = (uint32_t)line & c->set_mask, tag = tag_of(c, line);
    const uint64_t me = UINT64_C(1) << core->slot % 64;
    struct cache_page *page = caches_page(core, line);
    uint64_t *base = c->sharers + (size_t)set * c->stride;
    unsigned way = find(c, set, tag);
    enum cache_level level = page->home == (core->node & 0x7fff) ? LEVEL_LOCAL : LEVEL_REMOTE;
    enum remote remote = REMOTE_NONE;
    const struct cache_core *local = NULL, *from = NULL;
    const uint64_t others = way == NO_WAY ? 0 : base[way] & ~(caches_slots() > 64 ? 0 : me);

    if (way == NO_WAY || store) remote = remote_drop(core, page, line, store, &from);
    if (way != NO_WAY) {
        level = domain_has(base[way], core->domain, line) ? LEVEL_L3 : level;
        bool owned = c->owned[set] >> way & 1;
        if ((store || owned) && others) local = sharers_drop(base[way], core->domain, core, line, !store);
        base[way] = store ? me : base[way] | me;
    } else {
        way = victim(c, set);
        if (c->tags[(size_t)set * c->stride + way]) evict(core->domain, set, way);
        c->tags[(size_t)set * c->stride + way] = tag;
        set_owned(c, set, way, false);
        base[way] = me;
    }
    touch(c, set, way);
    if (store) set_owned(c, set, way, true);
    core->kept = others && level == LEVEL_L3 && !local && remote == REMOTE_NONE;
    if (local || remote >= REMOTE_NEAR || (store && remote == REMOTE_CLEAN)) {
        core->counts->coherence++;
        core->counts->within += remote == REMOTE_NONE;
        if (core->moved) core->moved[remote == REMOTE_NONE ? local->slot : from->slot]++;
    }
    return remote == REMOTE_DIRTY ? LEVEL_REMOTE_CACHE : remote == REMOTE_NEAR ? LEVEL_L3 : level;
}

/* The set is far away in memory, and likely to be asked next. */
static inline void prefetch(const struct cache *c, uint64_t line) {
    size_t first = ((size_t)line & c->set_mask) * c->stride;
    __builtin_prefetch(&c->tags[first]);
    __builtin_prefetch(&c->sharers[first]);
    __builtin_prefetch(&c->sharers[first + 8]);
}

static void l2_insert(struct cache_core *core, uint32_t set, uint64_t line, bool store) {
    struct cache *c = &core->l2;
    unsigned way = victim(c, set);
    if (c->tags[(size_t)set * c->stride + way]) {
        l1_drop(core, line_in(c, set, way), false);
        if (caches_data) line_insert(&caches_data[core->domain], line_in(c, set, way));
    }
    c->tags[(size_t)set * c->stride + way] = tag_of(c, line);
    set_owned(c, set, way, store);
    touch(c, set, way);
}

/* Make a line in a way of its L2 the core's alone; `had`: the level where it has it. What others had of it is in the L3
 * only if that has the line, too. */
static enum cache_level own(struct cache_core *core, uint64_t line, unsigned way, enum cache_level had) {
    bool kept = caches_data == NULL || way_of(&caches_data[core->domain], line) != NO_WAY;
    uint64_t before = core->counts->coherence;
    enum cache_level level = shared_access(core, line, true);
    core->kept &= kept;
    if (way != NO_WAY) set_owned(&core->l2, (uint32_t)line & core->l2.set_mask, way, true);
    return core->counts->coherence != before ? level : had;
}

/* A line that L1 does not have. `owned`: whether the thread may write it without asking, on return. */
static enum cache_level private_miss(struct cache_core *core, uint64_t line, bool store, bool *owned) {
    uint32_t set = (uint32_t)line & core->l2.set_mask;
    unsigned way = find(&core->l2, set, tag_of(&core->l2, line));
    struct cache_counts *r = core->counts;
    *owned = store;
    r->l1_misses++;
    prefetch(&caches_shared[core->domain], line);
    if (way == NO_WAY) {
        r->l2_misses++;
        enum cache_level level = shared_access(core, line, store);
        l2_insert(core, set, line, store);
        r->llc_local += level == LEVEL_LOCAL;
        r->llc_remote += level == LEVEL_REMOTE;
        r->remote_cache += level == LEVEL_REMOTE_CACHE;
        return level;
    }
    touch(&core->l2, set, way);
    *owned = core->l2.owned[set] >> way & 1;
    if (!store || *owned) return LEVEL_L2;
    *owned = true;
    return own(core, line, way, LEVEL_L2);
}

static enum cache_level access_line(struct cache_core *core, uint64_t line, bool store) {
    uint64_t *set = l1_set(core, line), wanted = line << 1 | 1;
    uint32_t way = 0;
    while (way < caches.l1.ways && (set[way] ^ wanted) > 1) way++;
    bool hit = way < caches.l1.ways, owned = hit && set[way] == wanted;
    enum cache_level level = LEVEL_L1;
    core->kept = false;
    if (!hit) {
        level = private_miss(core, line, store, &owned);
        /* What left L2 for this line may have left room here. */
        for (way = 0; way < caches.l1.ways - 1 && set[way]; way++);
    } else if (store && !owned) {
        level = own(core, line, way_of(&core->l2, line), LEVEL_L1);
        owned = true;
    }
    for (; way > 0; way--) set[way] = set[way - 1];
    set[0] = line << 1 | owned;
    return level;
}

enum cache_level caches_miss(struct cache_core *core, uint64_t line, bool store) {
    caches_lock();
    enum cache_level level = access_line(core, line, store);
    caches_unlock();
    return level;
}

void caches_forget(const struct cache_page *page, uint64_t number) {
    for (uint32_t domain = 0; domain < caches.domains; domain++) {
        if (!(page->domains >> domain % 48 & 1)) continue;
        struct cache *c = &caches_shared[domain];
        for (uint64_t line = number * PAGE_LINES; line < (number + 1) * PAGE_LINES; line++) {
            uint32_t set = (uint32_t)line & c->set_mask;
            unsigned way = find(c, set, tag_of(c, line));
            if (way == NO_WAY) continue;
            evict(domain, set, way);
            set_owned(c, set, way, false);
            empty_way(c, set, way);
            c->sharers[(size_t)set * c->stride + way] = 0;
        }
    }
}
