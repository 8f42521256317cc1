/* Samples counted by page, thread and phase of the run, and who touched each page first.
 *
 * A page belongs to a space: the number of its region where that is placed by its own offset, or beyond the regions'
 * numbers that of its process, where pages go by address. */
#ifndef NUMAPLAN_PAGES_H
#define NUMAPLAN_PAGES_H

#include <stddef.h>
#include <stdint.h>

enum { PAGE_SHIFT = 12, MOST_PHASES = 32, PAGE_THREADS = 2048 };
enum comm_region_kind { OTHER_REGION, PLACED_REGION, FILE_CODE }; /* of code the file's reading is the first touch */

/* start, kind: (regions,); process: (threads,) of each thread, or NULL: memory outside these regions does not count;
 * border: (borders,) ns at which a new phase begins, ascending; started: ns before which accesses stand apart, as
 * initialisation; since: ns before which they only tell who touched a page first; weight: what a sample of each event
 * counts, by its code (any byte); missed: whether a sample of an event and level went to memory, by event * levels +
 * level. */
struct comm_page_rules {
    uint32_t regions, borders;
    const uint64_t *start;
    const uint8_t *kind;
    const uint32_t *process;
    const int64_t *border;
    int64_t started, since;
    const double *weight;
    const uint8_t *missed;
    uint32_t levels;
};

struct comm_page_samples {
    size_t count;
    const int64_t *time;
    const uint64_t *addr;
    const int32_t *thread, *region;
    const uint8_t *is_write, *event, *level;
};

/* Counted accesses: of threads to pages, each in a stretch of time; first: of the first of them; addr: of the page;
 * region: that has the page, which may begin within it. */
struct comm_page_uses {
    size_t count;
    const int64_t *time, *first;
    const uint64_t *addr;
    const int32_t *thread, *region;
    const double *accesses, *writes, *missed;
};

/* One (space, page, thread, phase); before: accesses from before `started`, not among the others; toucher, first: who
 * touched the page first of all, and when; missed, missed_before: of accesses and before. */
struct comm_page_row {
    uint64_t page;
    int64_t first;
    double accesses, before, writes, missed, missed_before;
    uint32_t space;
    uint16_t thread, phase;
    uint32_t toucher, unused;
};

struct comm_pages *comm_pages_new(void);
/* Count further samples, in any order; 0, or -1 when memory is out. Threads have been checked. */
int comm_pages_add(struct comm_pages *pages, const struct comm_page_rules *rules,
                   const struct comm_page_samples *samples);
/* The same of counted accesses. */
int comm_pages_add_uses(struct comm_pages *pages, const struct comm_page_rules *rules,
                        const struct comm_page_uses *uses);
size_t comm_pages_rows(const struct comm_pages *pages);
/* All rows, in no order; 0, or -1 when memory is out. */
int comm_pages_read(const struct comm_pages *pages, struct comm_page_row *rows);
void comm_pages_free(struct comm_pages *pages);

#endif
