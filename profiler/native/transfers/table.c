/* How many transfers there were, by page, writer and reader: a table that is written out as a stretch ends.
 *
 * It is of a fixed size. Where the program shares more than fits, 2, 4, 8 and more pages count as one, under the number
 * of that which was met first. Its room is the user's, who may know it after a program was killed, too.
 */
#include "transfers.h"

#include <stdlib.h>
#include <string.h>

#define ENTRIES 65536
#define MOST_USED (ENTRIES / 4 * 3)
#define FEW_USED (ENTRIES / 8)
#define COARSEST 24 /* log2 of pages that count as one: beyond it, entries of one stretch come several times */
#define USED (UINT64_C(1) << 62)
#define HEADER (UINT64_C(1) << 63)

/* As in the file. first: USED and the number of the page, or 0; second: writer, reader (16 bits each), transfers. */
struct entry {
    uint64_t first, second;
};

static struct entry *table;
static uint32_t used, coarse;

static inline uint64_t number_of(const struct entry *e) { return e->first & ~USED; }

static struct entry *find(uint64_t number, uint32_t pair) {
    uint64_t chunk = number >> coarse,
             hash = (chunk * UINT64_C(0x9e3779b97f4a7c15) ^ pair) * UINT64_C(0xd1342543de82ef95);
    uint64_t at = hash >> 40 & (ENTRIES - 1);
    while (table[at].first && (number_of(&table[at]) >> coarse != chunk || table[at].second >> 32 != pair))
        at = (at + 1) & (ENTRIES - 1);
    return &table[at];
}

static void put(uint64_t number, uint32_t pair, uint32_t transfers) {
    struct entry *e = find(number, pair);
    if (!e->first) {
        *e = (struct entry){number | USED, (uint64_t)pair << 32};
        used++;
    }
    if ((uint32_t)e->second <= UINT32_MAX - transfers) e->second += transfers;
}

static void clear(void) {
    memset(table, 0, ENTRIES * sizeof *table);
    used = 0;
}

/* Have twice as many pages count as one, until there is room; false: no memory for it. */
static bool coarsen(void) {
    struct entry *old = malloc(ENTRIES * sizeof *old);
    if (old == NULL) return false;
    while (used >= MOST_USED && coarse < COARSEST) {
        coarse++;
        memcpy(old, table, ENTRIES * sizeof *old);
        clear();
        for (uint32_t i = 0; i < ENTRIES; i++)
            if (old[i].first) put(number_of(&old[i]), (uint32_t)(old[i].second >> 32), (uint32_t)old[i].second);
    }
    free(old);
    return used < MOST_USED;
}

static void flush(void) {
    for (uint32_t i = 0; i < ENTRIES; i++)
        if (table[i].first) transfers_write(table[i].first, table[i].second);
    clear();
}

/* What follows is of a stretch that begins now. */
void transfers_table_stretch(int64_t now) {
    if (table == NULL) table = transfers_room(ENTRIES * sizeof *table);
    if (table == NULL) return;
    if (used < FEW_USED && coarse > 0) coarse--;
    flush();
    transfers_write(HEADER, (uint64_t)now);
}

void transfers_table_add(uint64_t number, uint32_t writer, uint32_t reader) {
    if (table == NULL) return;
    put(number, writer << 16 | reader, 1);
    if (__builtin_expect(used >= MOST_USED, 0) && !coarsen()) flush();
}

void transfers_table_restart(void) {
    table = NULL;
    used = coarse = 0;
}
