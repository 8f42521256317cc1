/* The table of blocks at one scale. */
#include "communication.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 1024 };

bool table_init(struct table *table, unsigned shift, bool pairs, uint32_t threads, size_t max_bytes)
{
    table->shift = shift;
    table->pairs = pairs;
    table->seen_words = (threads + 16 + 63) / 64;
    table->set_words = (threads + 63) / 64;
    table->stride = 1 + table->seen_words + (pairs ? 2 * table->set_words : 0);
    table->max_bytes = max_bytes;
    table->slots = FIRST_SLOTS;
    table->word = calloc(table->slots * table->stride, sizeof *table->word);
    return table->word != NULL;
}

uint64_t block_hash(uint64_t block)
{
    block ^= block >> 32;
    block *= 0xd6e8feb86659fd93u;
    block ^= block >> 32;
    block *= 0xd6e8feb86659fd93u;
    return block ^ block >> 32;
}

bool table_keeps(const struct table *table, uint64_t hash)
{
    return table->thinned == 0 || hash >> (64 - table->thinned) == 0;
}

uint64_t *table_slot(struct table *table, uint64_t block, uint64_t hash)
{
    for (size_t place = hash;; place++) {
        uint64_t *slot = table->word + (place & (table->slots - 1)) * table->stride;
        if ((uint16_t)slot[1] == 0) {
            slot[0] = block;
            slot[1] = 1;
            table->used++;
            return slot;
        }
        if (slot[0] == block)
            return slot;
    }
}

/* Move the blocks that are kept into a table of `slots` slots. */
static bool rebuild(struct table *table, size_t slots)
{
    struct table fresh = *table;
    fresh.slots = slots;
    fresh.used = 0;
    fresh.word = calloc(slots * table->stride, sizeof *fresh.word);
    if (!fresh.word)
        return false;
    for (size_t i = 0; i < table->slots; i++) {
        const uint64_t *from = table->word + i * table->stride;
        if ((uint16_t)from[1] == 0)
            continue;
        uint64_t hash = block_hash(from[0]);
        if (table_keeps(table, hash))
            memcpy(table_slot(&fresh, from[0], hash), from, table->stride * sizeof *from);
    }
    free(table->word);
    *table = fresh;
    return true;
}

bool table_reserve(struct table *table, size_t more)
{
    while (table->used + more > table->slots / 4 * 3) {
        size_t slots = table->slots;
        if (slots * 2 * table->stride * sizeof *table->word <= table->max_bytes || slots <= 2 * FIRST_SLOTS)
            slots *= 2;
        else if (table->thinned < 24)
            table->thinned++;
        else
            return false;
        if (!rebuild(table, slots))
            return false;
    }
    return true;
}
