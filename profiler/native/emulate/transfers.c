/* Who takes lines that others have written: each one is counted, by page and stretch of time.
 *
 * A transfer is an access by a thread to a line whose last writer is another thread, the first one since that write.
 * Of each page that several threads have touched the last writer of each line is known, and who has touched it since;
 * of a page that one thread alone has touched, which lines it wrote. What an L1 has, its thread has touched since the
 * last write by others, so only what the L1s do not answer is looked at here.
 *
 * transfer_table.c keeps the counts.
 */
#include "emulate.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_PAGES 1024
#define MAX_BLOCKS (UINT32_C(1) << 18)
#define FEW 12 /* threads: where no others have touched a page, a line has 16 bits */
#define FEW_WRITER 4 /* bits of these for its writer */
#define NARROW UINT32_MAX
#define FIRST_SEEN 48  /* threads that a line's own word has room for, beside its writer */
#define GROUP_SEEN 64  /* and further ones in each group */
#define MOST_THREADS 0xffff
#define STRETCH_NS (INT64_C(1) << 20)
#define STRETCH_PART 32 /* of the time so far: a stretch is no longer, but for the first ones */

/* Lines that several threads may have touched. */
struct shared_lines {
    uint64_t word[PAGE_LINES]; /* the last writer's number, from 1 on, and a bit for each thread that has it */
    uint64_t *further[]; /* [groups] a word a line of the next GROUP_SEEN threads; NULL: none of them has it */
};

struct em_shared_page {
    uint64_t number;
    uint64_t written; /* by the only thread, one bit a line */
    union { /* NULL: no two threads have touched it */
        struct shared_lines *lines;
        uint16_t *narrow; /* [PAGE_LINES] as the words of lines, with FEW_WRITER bits for the writer */
    };
    uint32_t owner; /* the only thread, from 1 on; 0: nobody, or there are several */
    uint32_t groups; /* that `further` has room for; NARROW: there are narrow lines */
};

static struct em_shared_page **blocks; /* by index of the page */
static int64_t stretch_end, begun = -1;

bool em_transfers_init(void) {
    blocks = caches_zeroed(MAX_BLOCKS * sizeof *blocks);
    return blocks;
}

static struct em_shared_page *page_at(uint32_t index, bool make) {
    uint32_t block = index / BLOCK_PAGES;
    if (block >= MAX_BLOCKS) return NULL;
    if (!blocks[block] && make) blocks[block] = caches_zeroed(BLOCK_PAGES * sizeof **blocks);
    return blocks[block] ? &blocks[block][index % BLOCK_PAGES] : NULL;
}

static void empty(struct em_shared_page *page) {
    for (uint32_t i = 0; page->lines && page->groups != NARROW && i < page->groups; i++) free(page->lines->further[i]);
    free(page->lines);
    *page = (struct em_shared_page){.number = page->number};
}

/* The page is given back: who touches it next finds nobody's data. */
void em_transfers_forget(uint32_t index) {
    struct em_shared_page *page = blocks ? page_at(index, false) : NULL;
    if (page) empty(page);
}

/* In a forked child: what its parent's threads wrote is no other thread's. */
void em_transfers_forked(void) {
    for (uint32_t block = 0; blocks && block < MAX_BLOCKS; block++)
        for (uint32_t i = 0; blocks[block] && i < BLOCK_PAGES; i++) empty(&blocks[block][i]);
    begun = -1;
    stretch_end = 0;
    em_transfer_table_forked();
}

static bool share_among_few(struct em_shared_page *page) {
    uint16_t *lines = calloc(PAGE_LINES, sizeof *lines), word = (uint16_t)(1u << FEW_WRITER << (page->owner - 1));
    if (lines == NULL) return false;
    for (unsigned line = 0; line < PAGE_LINES; line++)
        if (page->written >> line & 1) lines[line] = (uint16_t)(page->owner | word);
    page->narrow = lines;
    page->groups = NARROW;
    return true;
}

static bool share_among_all(struct em_shared_page *page) {
    struct shared_lines *lines = calloc(1, sizeof *lines);
    if (lines == NULL) return false;
    uint64_t had = page->owner - 1 < FIRST_SEEN ? UINT64_C(1) << 16 << (page->owner - 1) : 0;
    for (unsigned line = 0; line < PAGE_LINES; line++)
        if (page->written >> line & 1) lines->word[line] = page->owner | had;
    page->lines = lines;
    return true;
}

/* A second thread touches the page. */
static bool share(struct em_shared_page *page, uint32_t thread) {
    if (!(thread < FEW && page->owner <= FEW ? share_among_few(page) : share_among_all(page))) return false;
    page->owner = 0;
    return true;
}

/* A thread beyond the few touches the page. */
static bool widen(struct em_shared_page *page) {
    struct shared_lines *wide = calloc(1, sizeof *wide);
    if (wide == NULL) return false;
    for (unsigned line = 0; line < PAGE_LINES; line++) {
        uint64_t word = page->narrow[line];
        wide->word[line] = word >> FEW_WRITER << 16 | (word & ((1u << FEW_WRITER) - 1));
    }
    free(page->narrow);
    page->lines = wide;
    page->groups = 0;
    return true;
}

/* Where it stands whether a thread has a line; NULL: nowhere yet. */
static uint64_t *further(struct em_shared_page *page, uint32_t thread, bool make) {
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
static bool note(struct em_shared_page *page, uint32_t thread, unsigned line) {
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
    em_transfer_table_stretch(now);
}

static void count(const struct em_thread *t, const struct em_shared_page *page, uint32_t writer) {
    int64_t now = em_clock_of(t);
    if (unlikely(now >= stretch_end)) begin_stretch(now);
    em_transfer_table_add(page->number, writer - 1, t->index);
}

static void access_narrow(const struct em_thread *t, const struct em_shared_page *page, unsigned line, bool store) {
    uint32_t word = page->narrow[line], bit = 1u << FEW_WRITER << t->index, writer = word & ((1u << FEW_WRITER) - 1);
    if (writer && writer != t->index + 1 && !(word & bit)) count(t, page, writer);
    page->narrow[line] = (uint16_t)(store ? (t->index + 1) | bit : word | bit);
}

/* One access to a line of a page that several threads have touched. */
static void access_shared(struct em_thread *t, struct em_shared_page *page, unsigned line, bool store) {
    if (likely(page->groups == NARROW)) {
        if (likely(t->index < FEW)) {
            access_narrow(t, page, line, store);
            return;
        }
        if (!widen(page)) return;
    }
    uint32_t writer = (uint32_t)page->lines->word[line] & 0xffff;
    bool had = note(page, t->index, line);
    if (writer && writer != t->index + 1 && !had) count(t, page, writer);
    if (!store) return;
    for (uint32_t group = 0; group < page->groups; group++)
        if (page->lines->further[group]) page->lines->further[group][line] = 0;
    page->lines->word[line] = t->index + 1;
    note(page, t->index, line);
}

/* An access that its L1 does not answer, by code of the program. */
void em_transfer(struct em_thread *t, uint64_t line, bool store) {
    uint64_t number = line >> (PAGE_SHIFT - LINE_SHIFT);
    struct em_shared_recent *recent = &t->shared[reach_recent_slot(line)];
    if (unlikely(t->index + 1 >= MOST_THREADS)) return;
    if (unlikely(recent->number != number + 1)) {
        recent->page = page_at(caches_page(&t->core, line)->index, true);
        recent->number = recent->page ? number + 1 : 0;
        if (!recent->page) return;
        recent->page->number = number;
    }
    struct em_shared_page *page = recent->page;
    unsigned at = (unsigned)line % PAGE_LINES;
    if (likely(page->lines == NULL)) {
        if (page->owner == 0) page->owner = t->index + 1;
        if (likely(page->owner == t->index + 1)) {
            page->written |= (uint64_t)store << at;
            return;
        }
        if (!share(page, t->index)) return;
    }
    access_shared(t, page, at, store);
}
