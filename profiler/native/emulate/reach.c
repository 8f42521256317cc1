/* How large a last-level cache must be to answer an access: of many sizes at once, by stack distances.
 *
 * For each L3 domain the lines that its threads touched are kept in the order of their last access: a cache of n
 * lines that replaces what was unused for longest has the first n of them. It is an order of groups, those whose last
 * access was in the same epoch; an epoch ends when its group has `grain` lines. Of each size the oldest epoch whose
 * lines are still in that cache is known, so that an access moves a few counts and searches nothing ([STACK]).
 * What another domain has written is found in that one's caches, or in memory once it has left them.
 *
 * The order is that of misses of the L1s, as an L3 sees it. What an L1 has is taken to be in caches of all sizes.
 */
#include "emulate.h"

#include <stdlib.h>

#define EPOCHS (UINT32_C(1) << 22) /* a line that was unused for so many is in no cache */
#define GRAINS 16                  /* groups in the smallest cache */
#define BLOCK_PAGES 1024
#define MAX_BLOCKS (UINT32_C(1) << 18)

struct order {
    uint16_t *group;           /* [epoch % EPOCHS] lines whose last access was in it */
    uint32_t epoch;            /* the present one */
    uint32_t oldest[EM_SIZES]; /* the first epoch whose lines the cache of a size has */
    uint32_t held[EM_SIZES];   /* how many these are */
    struct em_lines **pages;   /* by number of the page, in blocks */
};

static struct order *orders; /* by domain */
static uint32_t sizes, size_lines[EM_SIZES], grain;

bool em_reach_init(void) {
    sizes = em_options.sizes;
    for (uint32_t i = 0; i < sizes; i++) size_lines[i] = (uint32_t)(em_options.size[i] >> LINE_SHIFT);
    grain = size_lines[0] / GRAINS < UINT16_MAX ? size_lines[0] / GRAINS + 1 : UINT16_MAX;
    orders = calloc(caches.domains, sizeof *orders);
    for (uint32_t i = 0; orders && i < caches.domains; i++) {
        struct order *o = &orders[i];
        o->group = caches_zeroed(EPOCHS * sizeof *o->group);
        o->pages = caches_zeroed(MAX_BLOCKS * sizeof *o->pages);
        if (!o->group || !o->pages) return false;
        o->epoch = 1;
        for (uint32_t size = 0; size < sizes; size++) o->oldest[size] = 1;
    }
    return orders;
}

void em_reach_attach(struct em_thread *t) {
    if (sizes) t->epoch = &orders[t->core.domain].epoch;
}

/* Pages may get other homes. */
void em_reach_forget(void) {
    for (uint32_t slot = 0; slot < em_thread_slots(); slot++) {
        struct em_thread *t = em_thread_at(slot);
        for (uint32_t i = 0; t && i < EM_RECENT; i++) t->recent[i].number = 0;
    }
}

/* Epochs may wrap; 0 is none. */
static inline bool before(uint32_t epoch, uint32_t other) { return (int32_t)(epoch - other) < 0; }

static inline uint32_t after(uint32_t epoch) { return epoch + 1 ? epoch + 1 : 1; }

/* How many of the sizes are too small for a line last accessed in an epoch. */
static inline uint32_t too_small(const struct order *o, uint32_t epoch) {
    uint32_t size = 0;
    if (epoch == 0) return sizes;
    while (size < sizes && before(epoch, o->oldest[size])) size++;
    return size;
}

static inline void leave_group(struct order *o, uint32_t epoch) {
    uint16_t *group = &o->group[epoch % EPOCHS];
    *group -= *group > 0;
}

/* The oldest group leaves the cache of a size. */
static inline void shrink(struct order *o, uint32_t size) {
    o->held[size] -= o->group[o->oldest[size] % EPOCHS];
    o->oldest[size] = after(o->oldest[size]);
}

static void next_epoch(struct order *o) {
    uint32_t next = after(o->epoch);
    for (uint32_t size = 0; size < sizes; size++)
        while (next - o->oldest[size] >= EPOCHS) shrink(o, size);
    o->epoch = next;
    o->group[next % EPOCHS] = 0;
}

/* A line comes to the front, from where `small` sizes are too small for it. */
static inline void to_front(struct order *o, uint32_t from, uint32_t small) {
    if (small < sizes) leave_group(o, from);
    uint16_t *group = &o->group[o->epoch % EPOCHS];
    ++*group;
    for (uint32_t size = 0; size < small; size++)
        for (o->held[size]++; o->held[size] > size_lines[size] && o->oldest[size] != o->epoch;) shrink(o, size);
    if (*group >= grain) next_epoch(o);
}

/* Another domain takes the line. */
static void take_out(struct order *o, uint32_t *epoch) {
    uint32_t small = too_small(o, *epoch);
    if (small < sizes) leave_group(o, *epoch);
    for (uint32_t size = small; size < sizes; size++) o->held[size] -= o->held[size] > 0;
    *epoch = 0;
}

static struct em_lines *lines_of(struct order *o, const struct em_page *page, bool make) {
    uint32_t block = page->index / BLOCK_PAGES;
    if (block >= MAX_BLOCKS) return NULL;
    if (!o->pages[block] && make) o->pages[block] = caches_zeroed(BLOCK_PAGES * sizeof **o->pages);
    return o->pages[block] ? &o->pages[block][page->index % BLOCK_PAGES] : NULL;
}

/* A line that is not this domain's alone is accessed: how many sizes are too small for the one that wrote it to
 * still have it, or all of them. A store takes it from all others, a load shares it. */
static uint32_t ask_others(uint32_t domain, const struct em_page *page, uint32_t line, bool store) {
    uint32_t least = sizes;
    for (uint32_t i = 0; i < caches.domains; i++) {
        if (i == domain || !(page->shared.domains >> i % 48 & 1)) continue;
        struct em_lines *there = lines_of(&orders[i], page, false);
        if (!there || !there->epoch[line]) continue;
        uint32_t small = there->written >> line & 1 ? too_small(&orders[i], there->epoch[line]) : sizes;
        least = small < least ? small : least;
        there->written &= ~(UINT64_C(1) << line);
        if (store) take_out(&orders[i], &there->epoch[line]);
    }
    return least;
}

/* A store takes a line that is not this domain's alone; a load shares one that another domain has written. */
static uint32_t take_line(const struct em_thread *t, struct em_lines *lines, uint64_t line, bool store) {
    uint32_t at = (uint32_t)line % EM_PAGE_LINES, small = sizes;
    bool alone = lines->written >> at & 1;
    if (likely(store ? alone : lines->epoch[at] != 0)) return small;
    if (caches.domains > 1) small = ask_others(t->core.domain, em_page(&t->core, line), at, store);
    lines->written |= (uint64_t)store << at;
    return small;
}

/* An access that missed its L1, or a store that did not (then it is nothing to the order). */
struct em_reach em_reach(struct em_thread *t, uint64_t line, bool store, bool missed) {
    uint64_t number = line >> (PAGE_SHIFT - LINE_SHIFT);
    struct em_recent_page *recent = em_recent_page(t, line);
    struct order *o = &orders[t->core.domain];
    if (unlikely(recent->number != number + 1)) {
        const struct em_page *page = em_page(&t->core, line);
        recent->lines = lines_of(o, page, true);
        recent->remote = page->shared.home != (t->core.node & 0x7fff);
        recent->number = recent->lines ? number + 1 : 0;
        if (!recent->lines) return (struct em_reach){0};
    }
    uint32_t other = take_line(t, recent->lines, line, store);
    if (!missed) return (struct em_reach){0};
    uint32_t *epoch = &recent->lines->epoch[line % EM_PAGE_LINES], from = *epoch, own = too_small(o, from);
    if (from != o->epoch) {
        *epoch = o->epoch;
        to_front(o, from, own);
    }
    uint32_t small = other < own ? other : own;
    if (small) t->record.reach[recent->remote][small - 1]++;
    return (struct em_reach){(uint8_t)small, recent->remote};
}
