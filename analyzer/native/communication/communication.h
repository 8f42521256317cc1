/* Communication between threads, counted over blocks of memory at several scales in one pass over the samples.
 *
 * For each scale a table remembers every block touched: its last writer, who has touched it since that write, and
 * (where asked) who touched and who wrote it, ever and in the present window of samples. A sample by thread t in a
 * block whose last writer is another thread w, and which t has not touched since, adds one event w -> t. A block that
 * one thread wrote and another touched adds one to the pair's count of the whole run, and one in each window.
 */
#ifndef NUMAPLAN_COMMUNICATION_H
#define NUMAPLAN_COMMUNICATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_THREADS = 2048, MAX_SCALES = 16, MAX_GROUPS = 64 };

/* Blocks of 2^shift bytes in an open-addressing table; a slot is `stride` words:
 *   key | tag (16 bits: 0 free, 1 never written, w + 2 last writer) and one bit a thread seen since
 *   and with pairs: | window | touched | wrote | touched in the window | wrote in the window
 * A block's slot follows from the top `bits` bits of its hash, so that a table is rebuilt in the order of the old one.
 * When it would outgrow its memory, only blocks whose hash ends in `thinned` zero bits are kept, and each event in one
 * of them counts 2^thinned times. */
struct table {
    unsigned shift, thinned;
    bool pairs;
    unsigned bits;
    size_t slots, used, max_bytes;
    size_t stride, seen_words, set_words;
    uint64_t *word;
};

/* event_window: that many samples in a row count into one group of events, the next ones into the next group. Pairs
 * are grouped by block. All counts are [scale][group][writer][other]. */
struct counter {
    uint32_t threads, scales, groups;
    uint64_t event_window, pair_window, samples;
    struct table table[MAX_SCALES];
    uint32_t *events, *windowed;
};

bool table_init(struct table *table, unsigned shift, bool pairs, uint32_t threads, size_t max_bytes);
/* Make room for `more` further blocks; false when memory is out. */
bool table_reserve(struct table *table, size_t more);

static inline uint64_t block_hash(uint64_t block)
{
    block ^= block >> 32;
    block *= 0xd6e8feb86659fd93u;
    block ^= block >> 32;
    block *= 0xd6e8feb86659fd93u;
    return block ^ block >> 32;
}

static inline bool table_keeps(const struct table *table, uint64_t hash)
{
    return (hash & ((1u << table->thinned) - 1)) == 0;
}

/* Where the block's slot is, if it is not behind others. */
static inline const uint64_t *table_home(const struct table *table, uint64_t hash)
{
    return table->word + (hash >> (64 - table->bits)) * table->stride;
}

/* The block's slot, made if it is new; there must be room. */
static inline uint64_t *table_slot(struct table *table, uint64_t block, uint64_t hash)
{
    for (size_t place = hash >> (64 - table->bits);; place++) {
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

struct counter *counter_new(uint32_t threads, uint32_t scales, const uint8_t *shift, const uint8_t *pairs,
                            uint32_t groups, uint64_t event_window, uint64_t pair_window, uint64_t max_bytes);
int counter_add(struct counter *counter, size_t count, const uint64_t *addr, const uint16_t *thread,
                const uint8_t *is_write);
void counter_events(const struct counter *counter, uint32_t scale, double *out);
void counter_pairs(const struct counter *counter, uint32_t scale, double *out);
void counter_windowed(const struct counter *counter, uint32_t scale, double *out);
void counter_facts(const struct counter *counter, uint32_t scale, uint64_t *blocks, uint32_t *thinned);
void counter_free(struct counter *counter);

#endif
