/* Communication between threads, counted over blocks of memory of one size in one pass over the samples.
 *
 * A table remembers every block touched: its last writer, and who has touched it since that write. A sample by thread
 * t in a block whose last writer is another thread w, and which t has not touched since, adds one event w -> t. */
#ifndef NUMAPLAN_COMMUNICATION_H
#define NUMAPLAN_COMMUNICATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_THREADS = 2048 };

/* Blocks of 2^shift bytes in an open-addressing table; a slot is `stride` words:
 *   key | tag (16 bits: 0 free, 1 never written, w + 2 last writer) and one bit a thread seen since
 * A block's slot follows from the top `bits` bits of its hash, so that a table is rebuilt in the order of the old one.
 * When it would outgrow its memory, only blocks whose hash ends in `thinned` zero bits are kept, and each event in one
 * of them counts 2^thinned times. */
struct comm_table {
    unsigned shift, thinned, bits;
    size_t slots, used, max_bytes;
    size_t stride, seen_words;
    uint64_t *word;
};

/* events: [writer][reader]. */
struct comm_counter {
    uint32_t threads;
    struct comm_table table;
    uint64_t *events;
};

bool comm_table_init(struct comm_table *table, unsigned shift, uint32_t threads, size_t max_bytes);
/* Make room for `more` further blocks; false when memory is out. */
bool comm_table_reserve(struct comm_table *table, size_t more);

static inline uint64_t comm_block_hash(uint64_t block) {
    block ^= block >> 32;
    block *= 0xd6e8feb86659fd93u;
    block ^= block >> 32;
    block *= 0xd6e8feb86659fd93u;
    return block ^ block >> 32;
}

static inline bool comm_table_keeps(const struct comm_table *table, uint64_t hash) {
    return (hash & ((1u << table->thinned) - 1)) == 0;
}

/* Where the block's slot is, if it is not behind others. */
static inline const uint64_t *comm_table_home(const struct comm_table *table, uint64_t hash) {
    return table->word + (hash >> (64 - table->bits)) * table->stride;
}

/* The block's slot, made if it is new; there must be room. */
static inline uint64_t *comm_table_slot(struct comm_table *table, uint64_t block, uint64_t hash) {
    for (size_t place = hash >> (64 - table->bits);; place++) {
        uint64_t *slot = table->word + (place & (table->slots - 1)) * table->stride;
        if ((uint16_t)slot[1] == 0) {
            slot[0] = block;
            slot[1] = 1;
            table->used++;
            return slot;
        }
        if (slot[0] == block) return slot;
    }
}

struct comm_counter *comm_counter_new(uint32_t threads, uint32_t shift, uint64_t max_bytes);
/* Each event in a bin of time, those outside at the ends. */
struct comm_bins {
    int64_t start, width, count; /* ns; width >= 1, count >= 1 */
    size_t pairs;                /* threads * (threads - 1) / 2 */
    int32_t *cell;               /* [bin][pair], pairs (0, 1), (0, 2), …, (1, 2), … */
};
/* Samples in order of time, going on where the last call ended: 0, or -1 when memory is out. The caller has checked
 * that threads are in range. time, bins: NULL where only the sums are wanted. */
int comm_counter_add(struct comm_counter *counter, size_t count, const uint64_t *addr, const uint16_t *thread,
                     const uint8_t *is_write, const int64_t *time, const struct comm_bins *bins);
void comm_counter_events(const struct comm_counter *counter, double *out);
void comm_counter_facts(const struct comm_counter *counter, uint64_t *blocks, uint32_t *thinned);
void comm_counter_free(struct comm_counter *counter);

#endif
