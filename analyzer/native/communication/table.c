/* The table of blocks. */
#include "communication.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FIRST_BITS = 10, CACHE_LINE = 64, HUGE = 2 << 20 };

/* Zeroed words that start on a cache line; in huge pages where it pays, since slots are visited at random. */
static uint64_t *zeroed(size_t words) {
    size_t bytes = words * sizeof(uint64_t), unit = bytes >= HUGE ? HUGE : CACHE_LINE;
    bytes = (bytes + unit - 1) / unit * unit;
    uint64_t *memory = aligned_alloc(unit, bytes);
    if (!memory) return NULL;
    if (unit == HUGE) madvise(memory, bytes, MADV_HUGEPAGE);
    memset(memory, 0, bytes);
    return memory;
}

/* A slot that fits a cache line is in one. */
static size_t padded(size_t words) {
    for (size_t size = 2; size <= 8; size *= 2)
        if (words <= size) return size;
    return words;
}

bool comm_table_init(struct comm_table *table, unsigned shift, uint32_t threads, size_t max_bytes) {
    table->shift = shift;
    table->seen_words = (threads + 16 + 63) / 64;
    table->stride = padded(1 + table->seen_words);
    table->max_bytes = max_bytes;
    table->bits = FIRST_BITS;
    table->slots = (size_t)1 << table->bits;
    table->word = zeroed(table->slots * table->stride);
    return table->word != NULL;
}

/* Move the blocks that are kept into a table of 2^bits slots. */
static bool rebuild(struct comm_table *table, unsigned bits) {
    struct comm_table fresh = *table;
    fresh.bits = bits;
    fresh.slots = (size_t)1 << bits;
    fresh.used = 0;
    fresh.word = zeroed(fresh.slots * table->stride);
    if (!fresh.word) return false;
    for (size_t i = 0; i < table->slots; i++) {
        const uint64_t *from = table->word + i * table->stride;
        if ((uint16_t)from[1] == 0) continue;
        uint64_t hash = comm_block_hash(from[0]);
        if (comm_table_keeps(table, hash))
            memcpy(comm_table_slot(&fresh, from[0], hash), from, table->stride * sizeof *from);
    }
    free(table->word);
    *table = fresh;
    return true;
}

bool comm_table_reserve(struct comm_table *table, size_t more) {
    while (table->used + more > table->slots / 4 * 3) {
        unsigned bits = table->bits;
        if (table->slots * 2 * table->stride * sizeof *table->word <= table->max_bytes || bits == FIRST_BITS) bits++;
        else if (table->thinned < 24) table->thinned++;
        else return false;
        if (!rebuild(table, bits)) return false;
    }
    return true;
}
