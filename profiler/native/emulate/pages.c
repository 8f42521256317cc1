/* Where pages live: the node that touched a page first is its home, as under Linux' default policy. */
#include "emulate.h"

#include <sys/mman.h>

#define HOME_NONE UINT16_MAX

static struct {
    struct cache_page *table;
    uint64_t mask;
    uint32_t used;
    uint64_t placed, most; /* with a home: now, and at their most */
} pages;

static bool pages_grow(void) {
    uint64_t size = pages.table ? (pages.mask + 1) * 2 : 1 << 14;
    struct cache_page *old = pages.table, *table = caches_zeroed(size * sizeof *table);
    if (table == NULL) return false;
    for (uint64_t i = 0; old && i <= pages.mask; i++) {
        if (old[i].number == 0) continue;
        uint64_t at = old[i].number * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (size - 1);
        while (table[at].number) at = (at + 1) & (size - 1);
        table[at] = old[i];
    }
    if (old) munmap(old, (pages.mask + 1) * sizeof *old);
    pages.table = table;
    pages.mask = size - 1;
    return true;
}

/* The entry of a page, or the empty one where it belongs. */
static struct cache_page *page_find(uint64_t number) {
    uint64_t at = (number + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 20 & pages.mask;
    while (pages.table[at].number && pages.table[at].number != number + 1) at = (at + 1) & pages.mask;
    return &pages.table[at];
}

static void place(struct cache_page *page, uint32_t node) {
    page->home = node & 0x7fff;
    if (++pages.placed > pages.most) em_spool_footprint((pages.most = pages.placed) << PAGE_SHIFT);
}

/* The entry of the page that a thread now touches; its domains include the thread's. */
struct cache_page *caches_page(const struct cache_core *core, uint64_t line) {
    uint64_t number = line >> (PAGE_SHIFT - LINE_SHIFT);
    struct cache_page *page = page_find(number);
    if (unlikely(page->number == 0)) {
        if (pages.used * 2 > pages.mask && pages_grow()) page = page_find(number);
        page->index = pages.used++;
        page->number = number + 1;
        page->home = HOME_NONE;
    }
    if (unlikely(page->home == HOME_NONE)) place(page, core->node);
    caches_page_touched(page, core->domain);
    return page;
}

bool em_pages_placed(uint64_t number) {
    caches_lock();
    const struct cache_page *page = page_find(number);
    bool placed = page->number && page->home != HOME_NONE;
    caches_unlock();
    return placed;
}

/* In a forked child: its parent's pages are the parent's. */
void em_pages_forked(void) { pages.placed = pages.most = 0; }

bool em_pages_init(void) { return pages_grow(); }

static void forget(uint64_t start, uint64_t bytes, void (*forgotten)(uint32_t index)) {
    if (bytes > UINT64_MAX - start - (1 << PAGE_SHIFT)) return;
    uint64_t first = start >> PAGE_SHIFT, end = (start + bytes + (1 << PAGE_SHIFT) - 1) >> PAGE_SHIFT;
    bool sparse = end - first > pages.mask;
    for (uint64_t i = sparse ? 0 : first; i < (sparse ? pages.mask + 1 : end); i++) {
        struct cache_page *page = sparse ? &pages.table[i] : page_find(i);
        if (page->number <= first || page->number > end || page->home == HOME_NONE) continue;
        page->home = HOME_NONE;
        caches_forget(page, page->number - 1);
        reach_forget_page(page);
        page->domains = 0;
        forgotten(page->index);
        pages.placed -= pages.placed > 0;
    }
}

/* Pages that are given back have no home any more: the next toucher places them anew. */
void em_pages_forget(uint64_t start, uint64_t bytes, void (*forgotten)(uint32_t index)) {
    caches_lock();
    forget(start, bytes, forgotten);
    caches_unlock();
}
