/* Two open-addressing tables: pages by (space, page), and cells by (number of the page, thread, phase). */
#include "pages.h"

#include "communication.h"

#include <stdbool.h>
#include <stdlib.h>

enum { FIRST_BITS = 10, THREAD_AT = 5, NUMBER_AT = 16, NONE = 0 };

struct page {
    uint64_t page;
    int64_t first;
    uint32_t space, toucher, number; /* number: counted from 1; NONE: a free slot */
};

struct cell {
    uint64_t key; /* number of the page | thread (11 bits) | phase (5 bits); NONE: a free slot */
    double accesses, before, writes, missed, missed_before;
};

struct comm_pages {
    unsigned page_bits, cell_bits;
    size_t page_count, cell_count;
    struct page *page;
    struct cell *cell;
};

struct comm_pages *comm_pages_new(void) {
    struct comm_pages *pages = calloc(1, sizeof *pages);
    if (!pages) return NULL;
    pages->page_bits = pages->cell_bits = FIRST_BITS;
    pages->page = calloc((size_t)1 << FIRST_BITS, sizeof *pages->page);
    pages->cell = calloc((size_t)1 << FIRST_BITS, sizeof *pages->cell);
    if (pages->page && pages->cell) return pages;
    comm_pages_free(pages);
    return NULL;
}

void comm_pages_free(struct comm_pages *pages) {
    if (!pages) return;
    free(pages->page);
    free(pages->cell);
    free(pages);
}

/* The slot of a page, or the free one where it belongs. */
static struct page *page_slot(struct page *table, unsigned bits, uint32_t space, uint64_t page) {
    size_t mask = ((size_t)1 << bits) - 1;
    size_t at = comm_block_hash(page ^ (uint64_t)space << 40) >> (64 - bits);
    while (table[at].number != NONE && (table[at].page != page || table[at].space != space)) at = (at + 1) & mask;
    return table + at;
}

static struct cell *cell_slot(struct cell *table, unsigned bits, uint64_t key) {
    size_t mask = ((size_t)1 << bits) - 1, at = comm_block_hash(key) >> (64 - bits);
    while (table[at].key != NONE && table[at].key != key) at = (at + 1) & mask;
    return table + at;
}

static bool grow_pages(struct comm_pages *pages) {
    size_t slots = (size_t)1 << pages->page_bits;
    struct page *larger = calloc(slots * 2, sizeof *larger);
    if (!larger) return false;
    for (size_t i = 0; i < slots; i++)
        if (pages->page[i].number != NONE)
            *page_slot(larger, pages->page_bits + 1, pages->page[i].space, pages->page[i].page) = pages->page[i];
    free(pages->page);
    pages->page = larger;
    pages->page_bits++;
    return true;
}

static bool grow_cells(struct comm_pages *pages) {
    size_t slots = (size_t)1 << pages->cell_bits;
    struct cell *larger = calloc(slots * 2, sizeof *larger);
    if (!larger) return false;
    for (size_t i = 0; i < slots; i++)
        if (pages->cell[i].key != NONE) *cell_slot(larger, pages->cell_bits + 1, pages->cell[i].key) = pages->cell[i];
    free(pages->cell);
    pages->cell = larger;
    pages->cell_bits++;
    return true;
}

/* Room for one more of each: tables stay at most half full, as they are searched for every sample. */
static bool make_room(struct comm_pages *pages) {
    return (pages->page_count < (size_t)1 << (pages->page_bits - 1) || grow_pages(pages)) &&
           (pages->cell_count < (size_t)1 << (pages->cell_bits - 1) || grow_cells(pages));
}

static struct page *touched(struct comm_pages *pages, uint32_t space, uint64_t number, int64_t time, uint32_t thread) {
    struct page *page = page_slot(pages->page, pages->page_bits, space, number);
    if (page->number == NONE) {
        *page = (struct page){number, time, space, thread, (uint32_t)++pages->page_count};
    } else if (time < page->first || (time == page->first && thread < page->toucher)) {
        page->first = time;
        page->toucher = thread;
    }
    return page;
}

static unsigned phase_of(const struct comm_page_rules *rules, int64_t time) {
    unsigned phase = 0;
    while (phase < rules->borders && time >= rules->border[phase]) phase++;
    return phase;
}

struct amount {
    double accesses, writes, missed;
};

/* Accesses of a thread at some time, the first of them at another; rounding: of the page's offset in its region. */
static void count(struct comm_pages *pages, const struct comm_page_rules *rules, uint64_t addr, uint64_t rounding,
                  const int64_t time[2], uint32_t thread, uint32_t region, struct amount amount) {
    enum comm_region_kind kind = region < rules->regions ? rules->kind[region] : OTHER_REGION;
    bool inside = kind != OTHER_REGION && addr + rounding >= rules->start[region];
    bool placed = inside && kind == PLACED_REGION;
    if (!placed && (addr == 0 || !rules->process)) return;
    uint32_t space = inside ? region : rules->regions + rules->process[thread];
    uint64_t at = (inside ? addr + rounding - rules->start[region] : addr) >> PAGE_SHIFT;
    const struct page *page = touched(pages, space, at, kind == FILE_CODE ? 0 : time[1], thread);
    unsigned phase = placed ? phase_of(rules, time[0]) : 0;
    uint64_t key = (uint64_t)page->number << NUMBER_AT | thread << THREAD_AT | phase;
    struct cell *cell = cell_slot(pages->cell, pages->cell_bits, key);
    pages->cell_count += cell->key == NONE;
    cell->key = key;
    if (time[0] < rules->since) return;
    if (time[0] < rules->started) {
        cell->before += amount.accesses;
        cell->missed_before += amount.missed;
    } else {
        cell->accesses += amount.accesses;
        cell->missed += amount.missed;
        cell->writes += amount.writes;
    }
}

static void count_sample(struct comm_pages *pages, const struct comm_page_rules *rules,
                         const struct comm_page_samples *samples, size_t i) {
    const int64_t time[] = {samples->time[i], samples->time[i]};
    double weight = rules->weight[samples->event[i]];
    bool missed = rules->missed[samples->event[i] * rules->levels + samples->level[i]];
    count(pages, rules, samples->addr[i], 0, time, (uint32_t)samples->thread[i], (uint32_t)samples->region[i],
          (struct amount){weight, samples->is_write[i] ? weight : 0, missed ? weight : 0});
}

/* Whether there is room for one more. */
static bool ready(struct comm_pages *pages) { return pages->page_count < UINT32_MAX - 1 && make_room(pages); }

int comm_pages_add_uses(struct comm_pages *pages, const struct comm_page_rules *rules,
                        const struct comm_page_uses *uses) {
    if (rules->borders >= MOST_PHASES) return -1;
    for (size_t i = 0; i < uses->count; i++) {
        if (!ready(pages)) return -1;
        const int64_t time[] = {uses->time[i], uses->first[i]};
        count(pages, rules, uses->addr[i], (1 << PAGE_SHIFT) / 2, time, (uint32_t)uses->thread[i],
              (uint32_t)uses->region[i], (struct amount){uses->accesses[i], uses->writes[i], uses->missed[i]});
    }
    return 0;
}

int comm_pages_add(struct comm_pages *pages, const struct comm_page_rules *rules,
                   const struct comm_page_samples *samples) {
    if (rules->borders >= MOST_PHASES) return -1;
    for (size_t i = 0; i < samples->count; i++) {
        if (!ready(pages)) return -1;
        count_sample(pages, rules, samples, i);
    }
    return 0;
}

size_t comm_pages_rows(const struct comm_pages *pages) { return pages->cell_count; }

int comm_pages_read(const struct comm_pages *pages, struct comm_page_row *rows) {
    const struct page **by_number = malloc((pages->page_count + 1) * sizeof *by_number);
    if (!by_number) return -1;
    for (size_t i = 0; i < (size_t)1 << pages->page_bits; i++)
        if (pages->page[i].number != NONE) by_number[pages->page[i].number] = pages->page + i;
    for (size_t i = 0; i < (size_t)1 << pages->cell_bits; i++) {
        const struct cell *cell = pages->cell + i;
        if (cell->key == NONE) continue;
        const struct page *page = by_number[cell->key >> NUMBER_AT];
        *rows++ = (struct comm_page_row){.page = page->page,
                                         .first = page->first,
                                         .accesses = cell->accesses,
                                         .before = cell->before,
                                         .writes = cell->writes,
                                         .missed = cell->missed,
                                         .missed_before = cell->missed_before,
                                         .space = page->space,
                                         .thread = (uint16_t)(cell->key >> THREAD_AT & (PAGE_THREADS - 1)),
                                         .phase = (uint16_t)(cell->key & (MOST_PHASES - 1)),
                                         .toucher = page->toucher};
    }
    free(by_number);
    return 0;
}
