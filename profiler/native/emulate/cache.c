/* The cache model: private L1 and L2 for each thread, one inclusive L3 for each node, MESI-like sharing.
 *
 * L1 is in L2 is in L3. A line is `owned` by the private cache that wrote it last; a write by anybody else
 * takes it out of all other caches, a read by somebody else ends the ownership. An L3 knows which slots
 * may hold its lines (evictions from private caches are silent). A page's home is the node that touched it
 * first, and its set of nodes tells which other L3s need to be asked at all.
 *
 * Only the simplest hit, the most recent line of an L1 set, is decided by the caller (plugin.c).
 */
#include "emulate.h"

#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define NO_WAY 64
static struct cache *shared; /* an L3 a node */
static int32_t model_lock;   /* free schedule only: under the fair one, the turn is the lock */

static void model_lock_take(void)
{
    while (!options.fair && __atomic_exchange_n(&model_lock, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void model_lock_give(void)
{
    if (!options.fair)
        __atomic_store_n(&model_lock, 0, __ATOMIC_RELEASE);
}

/* In a forked child: whoever held it is not there. */
void cache_forked(void)
{
    model_lock = 0;
}

static bool cache_make(struct cache *c, uint32_t sets, uint32_t ways, bool with_sharers)
{
    c->ways = ways;
    c->stride = (ways + 3) & ~3u;
    c->set_mask = sets - 1;
    c->set_shift = (uint32_t)__builtin_ctz(sets);
    size_t lines = (size_t)sets * c->stride;
    c->tags = zeroed(lines * sizeof *c->tags);
    c->used = zeroed(sets * sizeof *c->used);
    c->owned = zeroed(sets * sizeof *c->owned);
    c->sharers = with_sharers ? zeroed(lines * sizeof *c->sharers) : NULL;
    return c->tags && c->used && c->owned && (c->sharers || !with_sharers);
}

/* The pages were unmapped. */
void cache_forget_pages(uint64_t start, uint64_t bytes)
{
    model_lock_take();
    pages_forget(start, bytes);
    model_lock_give();
}

bool cache_init(void)
{
    shared = calloc(options.nodes, sizeof *shared);
    bool made = shared && pages_init();
    for (uint32_t i = 0; made && i < options.nodes; i++)
        made = cache_make(&shared[i], options.l3_sets, options.l3_ways, true);
    return made;
}

/* Private caches for a thread: those of the slot's previous thread, emptied, or new ones. */
bool cache_attach(struct thread *t, const struct thread *previous)
{
    size_t l1_bytes = ((size_t)options.l1_sets << options.l1_shift) * sizeof *t->l1;
    if (previous == NULL) {
        t->l1 = zeroed(l1_bytes);
        return t->l1 && cache_make(&t->l2, options.l2_sets, options.l2_ways, false);
    }
    t->l1 = previous->l1;
    t->l2 = previous->l2;
    memset(t->l1, 0, l1_bytes);
    memset(t->l2.tags, 0, (size_t)options.l2_sets * t->l2.stride * sizeof *t->l2.tags);
    memset(t->l2.used, 0, options.l2_sets * sizeof *t->l2.used);
    memset(t->l2.owned, 0, options.l2_sets * sizeof *t->l2.owned);
    return true;
}

static inline uint32_t tag_of(const struct cache *c, uint64_t line)
{
    return (uint32_t)(line >> c->set_shift) + 1;
}

static inline unsigned find(const struct cache *c, uint32_t set, uint32_t tag)
{
    const uint32_t *tags = c->tags + (size_t)set * c->stride;
    uint32_t hits = 0;
#ifdef __SSE2__
    const __m128i wanted = _mm_set1_epi32((int)tag);
    for (uint32_t way = 0; way < c->ways; way += 4) {
        __m128i equal = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)(tags + way)), wanted);
        hits |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(equal)) << way;
    }
#else
    for (uint32_t way = 0; way < c->ways; way++)
        hits |= (uint32_t)(tags[way] == tag) << way;
#endif
    return hits ? (unsigned)__builtin_ctz(hits) : NO_WAY;
}

static inline void touch(struct cache *c, uint32_t set, unsigned way)
{
    uint32_t used = c->used[set] | 1u << way;
    uint32_t all = c->ways == 32 ? UINT32_MAX : (1u << c->ways) - 1;
    c->used[set] = used == all ? 1u << way : used;
}

static inline unsigned victim(const struct cache *c, uint32_t set)
{
    return (unsigned)__builtin_ctz(~c->used[set]) % c->ways;
}

static inline void set_owned(struct cache *c, uint32_t set, unsigned way, bool owned)
{
    c->owned[set] = (c->owned[set] & ~(1u << way)) | (uint32_t)owned << way;
}

static inline uint64_t *l1_set(const struct thread *t, uint64_t line)
{
    return t->l1 + ((line & (options.l1_sets - 1)) << options.l1_shift);
}

/* Take a line out of a thread's L1, or only end its ownership there. */
static void l1_drop(struct thread *t, uint64_t line, bool keep)
{
    uint64_t *set = l1_set(t, line);
    for (uint32_t way = 0; way < options.l1_ways; way++)
        if (set[way] >> 1 == line)
            set[way] = keep ? line << 1 : 0;
}

/* The same in its L1 and L2; true if it had the line (keep: if it owned it). */
static bool private_drop(struct thread *t, uint64_t line, bool keep)
{
    uint32_t set = (uint32_t)line & t->l2.set_mask;
    unsigned way = find(&t->l2, set, tag_of(&t->l2, line));
    if (way == NO_WAY)
        return false;
    bool owned = t->l2.owned[set] >> way & 1;
    set_owned(&t->l2, set, way, false);
    if (!keep) {
        t->l2.tags[(size_t)set * t->l2.stride + way] = 0;
        t->l2.used[set] &= ~(1u << way);
    }
    if (!keep || owned)
        l1_drop(t, line, keep);
    return owned || !keep;
}

/* private_drop for every slot in `sharers` but the given one, on one node. */
static bool sharers_drop(uint64_t sharers, uint32_t node, const struct thread *but, uint64_t line, bool keep)
{
    bool any = false;
    for (; sharers; sharers &= sharers - 1)
        for (uint32_t slot = (uint32_t)__builtin_ctzll(sharers); slot < thread_slots(); slot += 64) {
            struct thread *other = thread_at(slot);
            if (other && other != but && other->node == node)
                any |= private_drop(other, line, keep);
        }
    return any;
}

/* What other nodes had of a line. */
enum remote { REMOTE_NONE, REMOTE_CLEAN, REMOTE_DIRTY };

/* Ask the L3s of the other nodes that know the page. A store takes the line from them, a load ends its
 * ownership there. */
static enum remote remote_drop(struct thread *t, const struct page *page, uint64_t line, bool store)
{
    enum remote found = REMOTE_NONE;
    uint64_t others = page->nodes & ~(options.nodes > 48 ? 0 : UINT64_C(1) << t->node);
    for (uint32_t node = 0; others && node < options.nodes; node++) {
        struct cache *c = &shared[node];
        uint32_t set = (uint32_t)line & c->set_mask;
        unsigned way;
        if (node == t->node || !(others >> node % 48 & 1) || (way = find(c, set, tag_of(c, line))) == NO_WAY)
            continue;
        uint64_t *sharers = &c->sharers[(size_t)set * c->stride + way];
        bool owned = c->owned[set] >> way & 1;
        if (store || owned)
            sharers_drop(*sharers, node, t, line, !store);
        set_owned(c, set, way, false);
        if (store)
            c->tags[(size_t)set * c->stride + way] = 0, c->used[set] &= ~(1u << way), *sharers = 0;
        found = owned ? REMOTE_DIRTY : found == REMOTE_NONE ? REMOTE_CLEAN : found;
    }
    return found;
}

/* Make the node's L3 hold the line for this thread alone (store) or too (load); the level that had it. */
static enum level shared_access(struct thread *t, uint64_t line, bool store)
{
    struct cache *c = &shared[t->node];
    uint32_t set = (uint32_t)line & c->set_mask, tag = tag_of(c, line);
    const uint64_t me = UINT64_C(1) << t->slot % 64;
    struct page *page = page_touch(line >> (PAGE_SHIFT - LINE_SHIFT), t->node);
    uint64_t *base = c->sharers + (size_t)set * c->stride;
    unsigned way = find(c, set, tag);
    enum level level = LEVEL_L3;
    enum remote remote = REMOTE_NONE;
    bool local = false;

    if (way == NO_WAY || store)
        remote = remote_drop(t, page, line, store);
    if (way != NO_WAY) {
        bool owned = c->owned[set] >> way & 1;
        if ((store || owned) && base[way] & ~(thread_slots() > 64 ? 0 : me))
            local = sharers_drop(base[way], t->node, t, line, !store);
        base[way] = store ? me : base[way] | me;
    } else {
        way = victim(c, set);
        uint32_t old = c->tags[(size_t)set * c->stride + way];
        if (old)
            sharers_drop(base[way], t->node, NULL, (uint64_t)(old - 1) << c->set_shift | set, false);
        c->tags[(size_t)set * c->stride + way] = tag;
        set_owned(c, set, way, false);
        base[way] = me;
        level = page->home == (t->node & 0x7fff) ? LEVEL_LOCAL : LEVEL_REMOTE;
    }
    touch(c, set, way);
    if (store)
        set_owned(c, set, way, true);
    t->record.coherence += local || remote == REMOTE_DIRTY || (store && remote == REMOTE_CLEAN);
    return remote == REMOTE_DIRTY ? LEVEL_REMOTE_CACHE : level;
}

static void l2_insert(struct thread *t, uint32_t set, uint64_t line, bool store)
{
    struct cache *c = &t->l2;
    unsigned way = victim(c, set);
    uint32_t *tag = &c->tags[(size_t)set * c->stride + way];
    if (*tag)
        l1_drop(t, (uint64_t)(*tag - 1) << c->set_shift | set, false);
    *tag = tag_of(c, line);
    set_owned(c, set, way, store);
    touch(c, set, way);
}

/* A line that L1 does not have. `owned`: whether the thread may write it without asking, on return. */
static enum level private_miss(struct thread *t, uint64_t line, bool store, bool *owned)
{
    uint32_t set = (uint32_t)line & t->l2.set_mask;
    unsigned way = find(&t->l2, set, tag_of(&t->l2, line));
    struct thread_record *r = &t->record;
    *owned = store;
    r->l1_misses++;
    if (way == NO_WAY) {
        r->l2_misses++;
        enum level level = shared_access(t, line, store);
        l2_insert(t, set, line, store);
        r->llc_local += level == LEVEL_LOCAL;
        r->llc_remote += level == LEVEL_REMOTE;
        r->remote_cache += level == LEVEL_REMOTE_CACHE;
        return level;
    }
    touch(&t->l2, set, way);
    *owned = t->l2.owned[set] >> way & 1;
    if (!store || *owned)
        return LEVEL_L2;
    uint64_t before = r->coherence;
    enum level level = shared_access(t, line, true);
    set_owned(&t->l2, set, way, true);
    *owned = true;
    return r->coherence != before ? level : LEVEL_L2;
}

/* A write to a line that L1 has without owning it. */
static enum level upgrade(struct thread *t, uint64_t line)
{
    uint32_t set = (uint32_t)line & t->l2.set_mask;
    unsigned way = find(&t->l2, set, tag_of(&t->l2, line));
    uint64_t before = t->record.coherence;
    enum level level = shared_access(t, line, true);
    if (way != NO_WAY)
        set_owned(&t->l2, set, way, true);
    return t->record.coherence != before ? level : LEVEL_L1;
}

static enum level access_line(struct thread *t, uint64_t line, bool store)
{
    uint64_t *set = l1_set(t, line), wanted = line << 1 | 1;
    uint32_t way = 0;
    while (way < options.l1_ways && (set[way] ^ wanted) > 1)
        way++;
    bool hit = way < options.l1_ways, owned = hit && set[way] == wanted;
    enum level level = LEVEL_L1;
    if (!hit) {
        level = private_miss(t, line, store, &owned);
        /* What left L2 for this line may have left room here. */
        for (way = 0; way < options.l1_ways - 1 && set[way]; way++)
            ;
    } else if (store && !owned) {
        level = upgrade(t, line);
        owned = true;
    }
    for (; way > 0; way--)
        set[way] = set[way - 1];
    set[0] = line << 1 | owned;
    return level;
}

enum level cache_miss(struct thread *t, uint64_t line, bool store)
{
    model_lock_take();
    enum level level = access_line(t, line, store);
    model_lock_give();
    return level;
}
