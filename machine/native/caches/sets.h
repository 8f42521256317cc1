/* One set-associative cache: look-up, replacement by one `used` bit a way, ownership. */
#ifndef NUMAPLAN_CACHES_SETS_H
#define NUMAPLAN_CACHES_SETS_H

#include "caches.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define NO_WAY 64

static inline bool cache_make(struct cache *c, struct cache_shape shape, bool with_sharers) {
    c->ways = shape.ways;
    c->stride = (shape.ways + 3) & ~3u;
    c->set_mask = shape.sets - 1;
    c->set_shift = (uint32_t)__builtin_ctz(shape.sets);
    size_t lines = (size_t)shape.sets * c->stride;
    c->tags = caches_zeroed(lines * sizeof *c->tags);
    c->used = caches_zeroed(shape.sets * sizeof *c->used);
    c->owned = caches_zeroed(shape.sets * sizeof *c->owned);
    c->sharers = with_sharers ? caches_zeroed(lines * sizeof *c->sharers) : NULL;
    return c->tags && c->used && c->owned && (c->sharers || !with_sharers);
}

static inline uint32_t tag_of(const struct cache *c, uint64_t line) { return (uint32_t)(line >> c->set_shift) + 1; }

static inline unsigned find(const struct cache *c, uint32_t set, uint32_t tag) {
    const uint32_t *tags = c->tags + (size_t)set * c->stride;
    uint32_t hits = 0;
#ifdef __SSE2__
    const __m128i wanted = _mm_set1_epi32((int)tag);
    for (uint32_t way = 0; way < c->ways; way += 4) {
        __m128i equal = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)(tags + way)), wanted);
        hits |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(equal)) << way;
    }
#else
    for (uint32_t way = 0; way < c->ways; way++) hits |= (uint32_t)(tags[way] == tag) << way;
#endif
    return hits ? (unsigned)__builtin_ctz(hits) : NO_WAY;
}

static inline void touch(struct cache *c, uint32_t set, unsigned way) {
    uint32_t used = c->used[set] | 1u << way;
    uint32_t all = c->ways == 32 ? UINT32_MAX : (1u << c->ways) - 1;
    c->used[set] = used == all ? 1u << way : used;
}

static inline unsigned victim(const struct cache *c, uint32_t set) {
    return (unsigned)__builtin_ctz(~c->used[set]) % c->ways;
}

static inline void set_owned(struct cache *c, uint32_t set, unsigned way, bool owned) {
    c->owned[set] = (c->owned[set] & ~(1u << way)) | (uint32_t)owned << way;
}

/* The line in a way that is not empty. */
static inline uint64_t line_in(const struct cache *c, uint32_t set, unsigned way) {
    return (uint64_t)(c->tags[(size_t)set * c->stride + way] - 1) << c->set_shift | set;
}

static inline void empty_way(struct cache *c, uint32_t set, unsigned way) {
    c->tags[(size_t)set * c->stride + way] = 0;
    c->used[set] &= ~(1u << way);
}

static inline unsigned way_of(const struct cache *c, uint64_t line) {
    return find(c, (uint32_t)line & c->set_mask, tag_of(c, line));
}

static inline bool line_touch(struct cache *c, uint64_t line) {
    unsigned way = way_of(c, line);
    if (way != NO_WAY) touch(c, (uint32_t)line & c->set_mask, way);
    return way != NO_WAY;
}

static inline void line_drop(struct cache *c, uint64_t line) {
    unsigned way = way_of(c, line);
    if (way != NO_WAY) empty_way(c, (uint32_t)line & c->set_mask, way);
}

/* Put a line in, in place of the one that makes room for it. */
static inline void line_insert(struct cache *c, uint64_t line) {
    uint32_t set = (uint32_t)line & c->set_mask;
    if (!line_touch(c, line)) {
        unsigned way = victim(c, set);
        c->tags[(size_t)set * c->stride + way] = tag_of(c, line);
        touch(c, set, way);
    }
}

#endif
