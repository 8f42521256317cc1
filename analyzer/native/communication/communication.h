/* Communication between threads, counted over blocks of memory at several scales in one pass over the samples.
 *
 * For each scale a table remembers every block touched: its last writer, who has touched it since that write, and
 * (where asked) who ever touched and who ever wrote it. A sample by thread t in a block whose last writer is another
 * thread w, and which t has not touched since, adds one event w -> t.
 */
#ifndef NUMAPLAN_COMMUNICATION_H
#define NUMAPLAN_COMMUNICATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_THREADS = 4096, MAX_SCALES = 16, MAX_GROUPS = 64 };

/* Blocks of 2^shift bytes in an open-addressing table; a slot is `stride` words:
 *   key | tag (16 bits: 0 free, 1 never written, w + 2 last writer) and one bit a thread seen since | touched | wrote
 * When it would outgrow its memory, only blocks whose hash starts with `thinned` zero bits are kept, and each event
 * in one of them counts 2^thinned times. */
struct table {
    unsigned shift, thinned;
    bool pairs;
    size_t slots, used, max_bytes;
    size_t stride, seen_words, set_words;
    uint64_t *word;
};

struct counter {
    uint32_t threads, scales, groups;
    struct table table[MAX_SCALES];
    uint32_t *events; /* scales x groups x threads x threads, [writer][reader] */
};

bool table_init(struct table *table, unsigned shift, bool pairs, uint32_t threads, size_t max_bytes);
/* Make room for `more` further blocks; false when memory is out. */
bool table_reserve(struct table *table, size_t more);
uint64_t block_hash(uint64_t block);
bool table_keeps(const struct table *table, uint64_t hash);
/* The block's slot, made if it is new; there must be room. */
uint64_t *table_slot(struct table *table, uint64_t block, uint64_t hash);

struct counter *counter_new(uint32_t threads, uint32_t scales, const uint8_t *shift, const uint8_t *pairs,
                            uint32_t groups, uint64_t max_bytes);
int counter_add(struct counter *counter, size_t count, const uint64_t *addr, const uint16_t *thread,
                const uint8_t *is_write, const uint8_t *group);
void counter_events(const struct counter *counter, uint32_t scale, double *out);
void counter_pairs(const struct counter *counter, uint32_t scale, double *out);
void counter_facts(const struct counter *counter, uint32_t scale, uint64_t *blocks, uint32_t *thinned);
void counter_free(struct counter *counter);

#endif
