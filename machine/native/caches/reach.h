/* How large a last-level cache must be to answer an access: of many sizes at once (reach.c). */
#ifndef NUMAPLAN_REACH_H
#define NUMAPLAN_REACH_H

#include "caches.h"

#define REACH_SIZES 15  /* of last-level caches, at most; four bits of a sample */
#define REACH_RECENT 16 /* pages of a core that are found without a search */

/* What an L3 domain knows of the lines of a page. */
struct reach_lines {
    uint64_t number; /* the page's + 1 */
    uint32_t index;  /* the user's of the page */
    uint32_t epoch[PAGE_LINES]; /* of the last access; 0: none, or another domain has taken the line */
    uint64_t written;                 /* one bit a line: here, and not touched by another domain since */
};

struct reach_recent_page {
    struct reach_lines *lines; /* which may be another page's by now; NULL when empty */
    bool remote; /* its home is another node */
};

/* sizes: how many last-level caches, from the smallest on, would miss; remote: the page is another node's. */
struct reach {
    uint8_t sizes;
    bool remote;
};

struct reach_core {
    struct cache_core *core;
    const uint32_t *epoch;        /* the present one of its domain, NULL: how far accesses reach is not asked */
    uint64_t (*past)[REACH_SIZES]; /* accesses past exactly the i+1 smallest sizes, to local and to remote pages */
    struct reach_recent_page recent[REACH_RECENT];
};

/* `llc_sizes`: bytes of last-level caches, ascending, with colons between; false: another option, or none such. */
bool reach_option(const char *name, const char *value);

bool reach_asked(void); /* whether that option was given */

bool reach_init(void); /* after caches_settle; false: no memory */

/* From now on these are the accesses of a core, which count in `past`. */
void reach_attach(struct reach_core *reach, struct cache_core *core, uint64_t (*past)[REACH_SIZES]);

void reach_forget(struct reach_core *reach); /* pages may get other homes */

/* An access that missed its L1, or a store that did not. With the lock held. */
struct reach reach_access(struct reach_core *reach, uint64_t line, bool store, bool missed);

/* The kernel copies for a core's thread, to this line (store) or from it. That is no access of the program's: of it is
 * counted only that other cores lose what it reads (coherence, within, moved). */
enum cache_level reach_copied(struct reach_core *reach, struct cache_core *core, uint64_t line, bool store);

void reach_forget_page(const struct cache_page *page); /* as caches_forget, with the lock held */

/* Which of the recent pages the one of a line would be. */
static inline uint32_t reach_recent_slot(uint64_t line) {
    return (line >> (PAGE_SHIFT - LINE_SHIFT)) * UINT64_C(0x9e3779b97f4a7c15) >> 60 & (REACH_RECENT - 1);
}

static inline struct reach_recent_page *reach_recent(struct reach_core *reach, uint64_t line) {
    return &reach->recent[reach_recent_slot(line)];
}

/* Whether reach_access would change nothing: the line is among the last of its domain, and its own if written. */
static inline bool reach_known(struct reach_core *reach, uint64_t line, bool store, bool missed) {
    const struct reach_recent_page *recent = reach_recent(reach, line);
    return recent->lines && recent->lines->number == (line >> (PAGE_SHIFT - LINE_SHIFT)) + 1 &&
           (!missed || recent->lines->epoch[line % PAGE_LINES] == *reach->epoch) &&
           (!store || recent->lines->written >> line % PAGE_LINES & 1);
}

/* An access that the L1's most recent line does not answer: caches_miss, and how far it reaches. */
static inline enum cache_level reach_miss(struct reach_core *reach, struct cache_core *core, uint64_t line, bool store,
                                          struct reach *found) {
    uint64_t before = core->counts->l1_misses;
    enum cache_level level = caches_miss(core, line, store);
    bool missed = core->counts->l1_misses != before;
    if (reach->epoch && (missed || store) && !reach_known(reach, line, store, missed)) {
        caches_lock();
        *found = reach_access(reach, line, store, missed);
        caches_unlock();
    }
    return level;
}

#endif
