#include "transfers.h"

#include "caches.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_PAGES 1024
#define MAX_BLOCKS (UINT32_C(1) << 18)
#define FEW 12 /* threads: where no others have touched a page, a line has 16 bits */
#define FEW_WRITER 4 /* bits of these for its writer */
#define NARROW UINT32_MAX
#define FIRST_SEEN 48  /* threads that a line's own word has room for, beside its writer */
#define GROUP_SEEN 64  /* and further ones in each group */
#define STRETCH_NS (INT64_C(1) << 20)
#define STRETCH_PART 32 /* of the time so far: a stretch is no longer, but for the first ones */

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Lines that several threads may have touched. */
struct shared_lines {
    uint64_t word[PAGE_LINES]; /* the last writer's number, from 1 on, and a bit for each thread that has it */
    uint64_t *further[]; /* [groups] a word a line of the next GROUP_SEEN threads; NULL: none of them has it */
};

struct shared_page {
    uint64_t written; /* by the only thread, one bit a line */
    union { /* NULL: no two threads have touched it */
        struct shared_lines *lines;
        uint16_t *narrow; /* [PAGE_LINES] as the words of lines, with FEW_WRITER bits for the writer */
    };
    uint32_t owner; /* the only thread, from 1 on; 0: nobody, or there are several */
    uint32_t groups; /* that `further` has room for; NARROW: there are narrow lines */
};

static struct shared_page **blocks; /* by index of the page */
static int64_t stretch_end, begun = -1;

bool transfers_init(void) {
    blocks = caches_zeroed(MAX_BLOCKS * sizeof *blocks);
    return blocks;
}

static struct shared_page *page_at(uint32_t index, bool make) {
    uint32_t block = index / BLOCK_PAGES;
    if (block >= MAX_BLOCKS) return NULL;
    if (!blocks[block] && make) blocks[block] = caches_zeroed(BLOCK_PAGES * sizeof **blocks);
    return blocks[block] ? &blocks[block][index % BLOCK_PAGES] : NULL;
}

struct shared_page *transfers_page(uint32_t index) { return page_at(index, true); }

static void empty(struct shared_page *page) {
    for (uint32_t i = 0; page->lines && page->groups != NARROW && i < page->groups; i++) free(page->lines->further[i]);
    free(page->lines);
    *page = (struct shared_page){0};
}

void transfers_forget(uint32_t index) {
    struct shared_page *page = blocks ? page_at(index, false) : NULL;
    if (page) empty(page);
}

void transfers_restart(void) {
    for (uint32_t block = 0; blocks && block < MAX_BLOCKS; block++)
        for (uint32_t i = 0; blocks[block] && i < BLOCK_PAGES; i++) empty(&blocks[block][i]);
    begun = -1;
    stretch_end = 0;
    transfers_table_restart();
}

static bool share_among_few(struct shared_page *page) {
    uint16_t *lines = calloc(PAGE_LINES, sizeof *lines), word = (uint16_t)(1u << FEW_WRITER << (page->owner - 1));
    if (lines == NULL) return false;
    for (uint32_t line = 0; line < PAGE_LINES; line++)
        if (page->written >> line & 1) lines[line] = (uint16_t)(page->owner | word);
    page->narrow = lines;
    page->groups = NARROW;
    return true;
}

static bool share_among_all(struct shared_page *page) {
    struct shared_lines *lines = calloc(1, sizeof *lines);
    if (lines == NULL) return false;
    uint64_t had = page->owner - 1 < FIRST_SEEN ? UINT64_C(1) << 16 << (page->owner - 1) : 0;
    for (uint32_t line = 0; line < PAGE_LINES; line++)
        if (page->written >> line & 1) lines->word[line] = page->owner | had;
    page->lines = lines;
    return true;
}

/* A second thread touches the page. */
static bool share(struct shared_page *page, uint32_t thread) {
    if (!(thread < FEW && page->owner <= FEW ? share_among_few(page) : share_among_all(page))) return false;
    page->owner = 0;
    return true;
}

/* A thread beyond the few touches the page. */
static bool widen(struct shared_page *page) {
    struct shared_lines *wide = calloc(1, sizeof *wide);
    if (wide == NULL) return false;
    for (uint32_t line = 0; line < PAGE_LINES; line++) {
        uint64_t word = page->narrow[line];
        wide->word[line] = word >> FEW_WRITER << 16 | (word & ((1u << FEW_WRITER) - 1));
    }
    free(page->narrow);
    page->lines = wide;
    page->groups = 0;
    return true;
}

/* Where it stands whether a thread has a line; NULL: nowhere yet. */
static uint64_t *further(struct shared_page *page, uint32_t thread, bool make) {
    uint32_t group = (thread - FIRST_SEEN) / GROUP_SEEN;
    if (group >= page->groups) {
        struct shared_lines *grown =
            make ? realloc(page->lines, sizeof *grown + (group + 1) * sizeof *grown->further) : NULL;
        if (grown == NULL) return NULL;
        memset(&grown->further[page->groups], 0, (group + 1 - page->groups) * sizeof *grown->further);
        page->lines = grown;
        page->groups = group + 1;
    }
    uint64_t **seen = &page->lines->further[group];
    if (*seen == NULL && make) *seen = calloc(PAGE_LINES, sizeof **seen);
    return *seen;
}

/* Note that a thread has a line; whether it had it. */
static bool note(struct shared_page *page, uint32_t thread, uint32_t line) {
    uint64_t *word = &page->lines->word[line], bit = UINT64_C(1) << 16 << thread;
    if (thread >= FIRST_SEEN) {
        uint64_t *seen = further(page, thread, true);
        if (seen == NULL) return true;
        word = &seen[line];
        bit = UINT64_C(1) << (thread - FIRST_SEEN) % GROUP_SEEN;
    }
    bool had = *word & bit;
    *word |= bit;
    return had;
}

static void begin_stretch(int64_t now) {
    if (begun < 0) begun = now;
    int64_t length = (now - begun) / STRETCH_PART;
    stretch_end = now + (length > STRETCH_NS ? length : STRETCH_NS);
    transfers_table_stretch(now);
}

static void count(uint64_t number, uint32_t writer, uint32_t reader) {
    int64_t now = transfers_now();
    if (unlikely(now >= stretch_end)) begin_stretch(now);
    transfers_table_add(number, writer, reader);
}

static bool access_narrow(const struct shared_page *page, uint64_t number, uint32_t line, uint32_t who, bool store) {
    uint32_t word = page->narrow[line], bit = 1u << FEW_WRITER << who, writer = word & ((1u << FEW_WRITER) - 1);
    bool taken = writer && writer != who + 1 && !(word & bit);
    page->narrow[line] = (uint16_t)(store ? (who + 1) | bit : word | bit);
    if (taken) count(number, writer - 1, who);
    return store ? (word & ~bit) >> FEW_WRITER : taken && word >> FEW_WRITER == 1u << (writer - 1);
}

/* Whether nobody has a line but two. */
static bool only(const struct shared_page *page, uint32_t line, uint32_t one, uint32_t other) {
    uint64_t has = page->lines->word[line] >> 16;
    if (one < FIRST_SEEN) has &= ~(UINT64_C(1) << one);
    if (other < FIRST_SEEN) has &= ~(UINT64_C(1) << other);
    for (uint32_t group = 0, first = FIRST_SEEN; !has && group < page->groups; group++, first += GROUP_SEEN) {
        if (!page->lines->further[group]) continue;
        has = page->lines->further[group][line];
        if (one >= first && one < first + GROUP_SEEN) has &= ~(UINT64_C(1) << (one - first));
        if (other >= first && other < first + GROUP_SEEN) has &= ~(UINT64_C(1) << (other - first));
    }
    return !has;
}

static void write_shared(struct shared_page *page, uint32_t line, uint32_t who) {
    for (uint32_t group = 0; group < page->groups; group++)
        if (page->lines->further[group]) page->lines->further[group][line] = 0;
    page->lines->word[line] = who + 1;
    note(page, who, line);
}

/* One access to a line of a page that several have touched. */
static bool access_shared(struct shared_page *page, uint64_t number, uint32_t line, uint32_t who, bool store) {
    if (likely(page->groups == NARROW)) {
        if (likely(who < FEW)) return access_narrow(page, number, line, who, store);
        if (!widen(page)) return false;
    }
    uint32_t writer = (uint32_t)page->lines->word[line] & 0xffff;
    bool taken = !note(page, who, line) && writer && writer != who + 1;
    bool asks = store ? !only(page, line, who, who) : taken && only(page, line, writer - 1, who);
    if (taken) count(number, writer - 1, who);
    if (store) write_shared(page, line, who);
    return asks;
}

/* Whether nobody else has touched the page. */
static bool keep_alone(struct shared_page *page, uint32_t line, uint32_t who, bool store) {
    if (page->owner == 0) page->owner = who + 1;
    if (unlikely(page->owner != who + 1)) return false;
    page->written |= (uint64_t)store << line;
    return true;
}

void transfers_written(struct shared_page *page, uint32_t line, uint32_t who) {
    if (who >= TRANSFERS_WHO || (!page->lines && (keep_alone(page, line, who, true) || !share(page, who)))) return;
    if (page->groups == NARROW && who < FEW) page->narrow[line] = (uint16_t)((who + 1) | 1u << FEW_WRITER << who);
    else if (page->groups != NARROW || widen(page)) write_shared(page, line, who);
}

bool transfers_access(struct shared_page *page, uint64_t number, uint32_t line, uint32_t who, bool store) {
    if (unlikely(who >= TRANSFERS_WHO)) return false;
    if (likely(page->lines == NULL)) {
        if (likely(keep_alone(page, line, who, store))) return false;
        if (!share(page, who)) return false;
    }
    return access_shared(page, number, line, who, store);
}
