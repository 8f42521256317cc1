#include "page_uses.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE PAGE_USES_AT_ONCE
#define FIRST_INDEX 2048
#define GONE UINT32_MAX /* in the index: its use is not found any more */
#define USED (UINT64_C(1) << 62)
#define HEADER (UINT64_C(1) << 63)
#define LEAST_NS (INT64_C(1) << 18) /* of a stretch */
#define PART 32 /* of the time before, that a stretch takes at least */
#define SHARE 8 /* of the uses that are left, that a stretch has where it takes as long as all before */

static struct page_use *at(const struct page_uses *u, uint32_t place) {
    return &u->rooms[place / AT_ONCE][place % AT_ONCE];
}

static struct page_use *append(struct page_uses *u) {
    if (u->end / AT_ONCE == u->room_count) {
        if (u->room_count == u->rooms_listed) {
            uint32_t listed = u->rooms_listed ? u->rooms_listed * 2 : 16;
            struct page_use **grown = realloc(u->rooms, listed * sizeof *grown);
            if (grown == NULL) return NULL;
            u->rooms = grown;
            u->rooms_listed = listed;
        }
        struct page_use *room = u->take();
        if (room == NULL) return NULL;
        u->rooms[u->room_count++] = room;
    }
    return at(u, u->end++);
}

static uint32_t slot_of(const struct page_uses *u, uint64_t key) {
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & u->mask;
}

/* The place in the index of a use, or where it belongs. */
static uint32_t *seek(const struct page_uses *u, uint64_t key) {
    uint32_t slot = slot_of(u, key);
    while (u->index[slot] && (u->index[slot] == GONE || at(u, u->index[slot] - 1)->key != key))
        slot = (slot + 1) & u->mask;
    return &u->index[slot];
}

/* The index twice as large, without those that are gone. */
static bool grow(struct page_uses *u) {
    uint32_t size = u->index ? (u->mask + 1) * 2 : FIRST_INDEX, *old = u->index, old_size = u->index ? u->mask + 1 : 0;
    uint32_t *larger = calloc(size, sizeof *larger);
    if (larger == NULL) return false;
    u->index = larger;
    u->mask = size - 1;
    u->filled = 0;
    for (uint32_t i = 0; i < old_size; i++) {
        if (old[i] == 0 || old[i] == GONE) continue;
        uint32_t slot = slot_of(u, at(u, old[i] - 1)->key);
        while (larger[slot]) slot = (slot + 1) & u->mask;
        larger[slot] = old[i];
        u->filled++;
    }
    free(old);
    return true;
}

struct page_use *page_uses_find(struct page_uses *u, uint64_t number, uint32_t who, int64_t now) {
    uint64_t key = USED | number << 16 | who;
    if (__builtin_expect(u->end == 0, 0)) {
        u->left = PAGE_USES_MOST;
        u->begun = now;
        page_uses_stretch(u, now);
    }
    if (!u->index || u->filled >= u->mask / 4 * 3)
        if (!grow(u) && (!u->index || u->filled >= u->mask - 1)) return NULL;
    uint32_t *slot = seek(u, key);
    if (*slot) return at(u, *slot - 1);
    struct page_use *use = append(u);
    if (use == NULL) return NULL;
    int64_t ticks = (now - u->since) / PAGE_USES_TICK;
    *use = (struct page_use){.key = key, .began = ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX};
    *slot = u->end;
    u->filled++;
    return use;
}

bool page_uses_due(const struct page_uses *u, int64_t now) {
    int64_t took = now - u->since, before = u->since - u->begun, count = u->end - u->first;
    if (took < LEAST_NS || took < before / PART || count == 0 || count > u->left / 4) return false;
    return (double)took * (double)u->left >= (double)SHARE * (double)count * (double)before;
}

void page_uses_stretch(struct page_uses *u, int64_t now) {
    uint32_t rest = u->end % AT_ONCE, kept = rest ? u->room_count - 1 : u->room_count;
    for (uint32_t i = 0; i < kept; i++) u->give(u->rooms[i]);
    if (rest) u->rooms[0] = u->rooms[kept];
    u->room_count = rest ? 1 : 0;
    u->left -= u->end - u->first;
    u->end = rest;
    u->since = now;
    struct page_use *header = append(u);
    if (header) *header = (struct page_use){.key = HEADER, .made = {(uint64_t)now}};
    u->first = u->end;
    /* An index that was grown for one stretch is not cleared for each later one. */
    if (u->index && u->mask >= FIRST_INDEX && u->filled < u->mask / 8) {
        free(u->index);
        u->index = NULL;
    }
    if (u->index) memset(u->index, 0, (u->mask + 1) * sizeof *u->index);
    u->filled = 0;
}

static void forget(struct page_uses *u, uint64_t key) {
    uint32_t *slot = seek(u, key);
    if (*slot) *slot = GONE;
}

void page_uses_forget(struct page_uses *u, uint64_t first, uint64_t end, uint32_t who) {
    uint64_t count = u->end - u->first;
    if (!u->index || count == 0 || end <= first) return;
    if (end - first < count / (who ? who : 1)) {
        for (uint64_t number = first; number < end; number++)
            for (uint32_t i = 0; i < who; i++) forget(u, USED | number << 16 | i);
        return;
    }
    for (uint32_t place = u->first; place < u->end; place++) {
        uint64_t number = (at(u, place)->key & ~USED) >> 16;
        if (number >= first && number < end) forget(u, at(u, place)->key);
    }
}
