/* How large a last-level cache must be to answer an access: of many sizes at once, by stack distances.
 *
 * For each L3 domain the lines that its threads touched are kept in the order of their last access: a cache of n
 * lines that replaces what was unused for longest has the first n of them. It is an order of groups, those whose last
 * access was in the same epoch; an epoch ends when its group has `grain` lines. Of each size the oldest epoch whose
 * lines are still in that cache is known, so that an access moves a few counts and searches nothing ([STACK]).
 * What another domain has written is found in that one's caches, or in memory once it has left them.
 *
 * Pages whose lines are in none of the caches any more make room for others: memory is bounded by what the largest cache
 * has, not by what the program touches.
 *
 * The order is that of misses of the L1s, as an L3 sees it. What an L1 has is taken to be in caches of all sizes.
 */
#include "reach.h"

#include <stdlib.h>
#include <string.h>

#define EPOCHS (UINT32_C(1) << 22) /* a line that was unused for so many is in no cache */
#define GRAINS 16                  /* groups in the smallest cache */
#define BLOCK_PAGES 1024
#define MAX_BLOCKS (UINT32_C(1) << 18)
#define FEWEST_PAGES 4096 /* whose lines are known, before pages make room */
#define LOOKED_AT 4       /* for one to make room, each time that room is wanted */

struct order {
    uint16_t *group;           /* [epoch % EPOCHS] lines whose last access was in it */
    uint32_t epoch;            /* the present one */
    uint32_t oldest[REACH_SIZES]; /* the first epoch whose lines the cache of a size has */
    uint32_t held[REACH_SIZES];   /* how many these are */
    uint32_t *
        *pages; /* by the user's index, in blocks: the place of the page's lines, + 1; 0: nothing is known of them */
    struct reach_lines **lines; /* by place, in blocks */
    uint32_t places, next; /* which are in use, and which is to be looked at */
};

static struct order *orders; /* by domain */
static uint32_t sizes, size_lines[REACH_SIZES], grain;

bool reach_asked(void) { return sizes > 0; }

bool reach_option(const char *name, const char *value) {
    uint64_t last = 0;
    if (strcmp(name, "llc_sizes")) return false;
    sizes = 0;
    for (char *end; *value; value = *end ? end + 1 : end) {
        uint64_t bytes = strtoull(value, &end, 10);
        if (sizes == REACH_SIZES || bytes <= last || bytes >> LINE_SHIFT > INT32_MAX) return false;
        size_lines[sizes++] = (uint32_t)(bytes >> LINE_SHIFT);
        last = bytes;
    }
    return true;
}

bool reach_init(void) {
    grain = size_lines[0] / GRAINS < UINT16_MAX ? size_lines[0] / GRAINS + 1 : UINT16_MAX;
    orders = calloc(caches.domains, sizeof *orders);
    for (uint32_t i = 0; orders && i < caches.domains; i++) {
        struct order *o = &orders[i];
        o->group = caches_zeroed(EPOCHS * sizeof *o->group);
        o->pages = caches_zeroed(MAX_BLOCKS * sizeof *o->pages);
        o->lines = caches_zeroed(MAX_BLOCKS * sizeof *o->lines);
        if (!o->group || !o->pages || !o->lines) return false;
        o->epoch = 1;
        for (uint32_t size = 0; size < sizes; size++) o->oldest[size] = 1;
    }
    return orders;
}

void reach_attach(struct reach_core *reach, struct cache_core *core, uint64_t (*past)[REACH_SIZES]) {
    reach->core = core;
    reach->past = past;
    reach->epoch = sizes ? &orders[core->domain].epoch : NULL;
}

void reach_forget(struct reach_core *reach) {
    for (uint32_t i = 0; i < REACH_RECENT; i++) reach->recent[i].lines = NULL;
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

static struct reach_lines *lines_at(const struct order *o, uint32_t place) {
    return &o->lines[place / BLOCK_PAGES][place % BLOCK_PAGES];
}

static bool in_no_cache(const struct order *o, const struct reach_lines *lines) {
    bool gone = true;
    for (uint32_t line = 0; line < PAGE_LINES; line++)
        gone &= lines->epoch[line] == 0 || before(lines->epoch[line], o->oldest[sizes - 1]);
    return gone;
}

/* The place of lines that are in no cache, which are forgotten; or a new one, if there is memory. */
static bool find_place(struct order *o, uint32_t *place) {
    for (uint32_t tries = 0; o->places >= FEWEST_PAGES && tries < LOOKED_AT; tries++) {
        *place = o->next = o->next + 1 < o->places ? o->next + 1 : 0;
        struct reach_lines *lines = lines_at(o, *place);
        if (!in_no_cache(o, lines)) continue;
        o->pages[lines->index / BLOCK_PAGES][lines->index % BLOCK_PAGES] = 0;
        memset(lines, 0, sizeof *lines);
        return true;
    }
    uint32_t block = o->places / BLOCK_PAGES;
    if (block >= MAX_BLOCKS) return false;
    if (!o->lines[block]) o->lines[block] = caches_zeroed(BLOCK_PAGES * sizeof **o->lines);
    *place = o->places;
    o->places += o->lines[block] != NULL;
    return o->lines[block];
}

static struct reach_lines *lines_of(struct order *o, const struct cache_page *page, bool make) {
    uint32_t block = page->index / BLOCK_PAGES, place;
    if (block >= MAX_BLOCKS) return NULL;
    if (!o->pages[block] && make) o->pages[block] = caches_zeroed(BLOCK_PAGES * sizeof **o->pages);
    uint32_t *known = o->pages[block] ? &o->pages[block][page->index % BLOCK_PAGES] : NULL;
    if (known && *known) return lines_at(o, *known - 1);
    if (!known || !make || !find_place(o, &place)) return NULL;
    *known = place + 1;
    lines_at(o, place)->index = page->index;
    return lines_at(o, place);
}

/* A line that is not this domain's alone is accessed: how many sizes are too small for the one that wrote it to
 * still have it, or all of them. A store takes it from all others, a load shares it. */
static uint32_t ask_others(uint32_t domain, const struct cache_page *page, uint32_t line, bool store) {
    uint32_t least = sizes;
    for (uint32_t i = 0; i < caches.domains; i++) {
        if (i == domain || !(page->domains >> i % 48 & 1)) continue;
        struct reach_lines *there = lines_of(&orders[i], page, false);
        if (!there || !there->epoch[line]) continue;
        uint32_t small = there->written >> line & 1 ? too_small(&orders[i], there->epoch[line]) : sizes;
        least = small < least ? small : least;
        there->written &= ~(UINT64_C(1) << line);
        if (store) take_out(&orders[i], &there->epoch[line]);
    }
    return least;
}

/* A store takes a line that is not this domain's alone; a load shares one that another domain has written. */
static uint32_t take_line(const struct cache_core *core, struct reach_lines *lines, uint64_t line, bool store) {
    uint32_t at = (uint32_t)line % PAGE_LINES, small = sizes;
    bool alone = lines->written >> at & 1;
    if (__builtin_expect(store ? alone : lines->epoch[at] != 0, 1)) return small;
    if (caches.domains > 1) small = ask_others(core->domain, caches_page(core, line), at, store);
    lines->written |= (uint64_t)store << at;
    return small;
}

/* To a store that did not miss its L1 the order is nothing. */
struct reach reach_access(struct reach_core *reach, uint64_t line, bool store, bool missed) {
    uint64_t number = line >> (PAGE_SHIFT - LINE_SHIFT);
    struct reach_recent_page *recent = reach_recent(reach, line);
    const struct cache_core *core = reach->core;
    struct order *o = &orders[core->domain];
    if (__builtin_expect(!recent->lines || recent->lines->number != number + 1, 0)) {
        const struct cache_page *page = caches_page(core, line);
        recent->lines = lines_of(o, page, true);
        recent->remote = page->home != (core->node & 0x7fff);
        if (!recent->lines) return (struct reach){0};
        recent->lines->number = number + 1;
    }
    uint32_t other = take_line(core, recent->lines, line, store);
    if (!missed) return (struct reach){0};
    uint32_t *epoch = &recent->lines->epoch[line % PAGE_LINES], from = *epoch, own = too_small(o, from);
    if (from != o->epoch) {
        *epoch = o->epoch;
        to_front(o, from, own);
    }
    uint32_t small = other < own ? other : own;
    if (small) reach->past[recent->remote][small - 1]++;
    return (struct reach){(uint8_t)small, recent->remote};
}

enum cache_level reach_copied(struct reach_core *reach, struct cache_core *core, uint64_t line, bool store) {
    static uint64_t nowhere[2][REACH_SIZES];
    struct cache_counts *counts = core->counts, others = {0};
    uint64_t *moved = core->moved, (*past)[REACH_SIZES] = reach->past;
    struct reach found;
    core->kept = false;
    if (caches_hit(core, line, store)) return LEVEL_L1;
    core->counts = &others;
    core->moved = store ? NULL : moved; /* nobody asks for what was there before */
    reach->past = nowhere;
    enum cache_level level = reach_miss(reach, core, line, store, &found);
    reach->past = past;
    core->moved = moved;
    core->counts = counts;
    counts->coherence += store ? 0 : others.coherence;
    counts->within += store ? 0 : others.within;
    return level;
}

void reach_forget_page(const struct cache_page *page) {
    for (uint32_t domain = 0; sizes && domain < caches.domains; domain++) {
        struct order *o = &orders[domain];
        struct reach_lines *lines = lines_of(o, page, false);
        for (uint32_t line = 0; lines && line < PAGE_LINES; line++)
            if (lines->epoch[line]) take_out(o, &lines->epoch[line]);
        if (lines) lines->written = 0;
    }
}
