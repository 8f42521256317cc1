/* Counting events: samples in order of time, in batches so that the tables' cache misses overlap. */
#include "communication.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 128 };

struct counter *counter_new(uint32_t threads, uint32_t scales, const uint8_t *shift, const uint8_t *pairs,
                            uint32_t groups, uint64_t max_bytes)
{
    if (threads == 0 || threads > MAX_THREADS || scales > MAX_SCALES || groups == 0 || groups > MAX_GROUPS)
        return NULL;
    struct counter *counter = calloc(1, sizeof *counter);
    if (!counter)
        return NULL;
    *counter = (struct counter){.threads = threads, .scales = scales, .groups = groups};
    counter->events = calloc((size_t)scales * groups * threads * threads, sizeof *counter->events);
    bool whole = counter->events != NULL;
    for (uint32_t s = 0; whole && s < scales; s++)
        whole = shift[s] < 64 && table_init(&counter->table[s], shift[s], pairs[s], threads, max_bytes);
    if (whole)
        return counter;
    counter_free(counter);
    return NULL;
}

void counter_free(struct counter *counter)
{
    if (!counter)
        return;
    for (uint32_t s = 0; s < counter->scales; s++)
        free(counter->table[s].word);
    free(counter->events);
    free(counter);
}

/* One sample in its block: the writer it communicates with, or -1; then the block's new state. */
static int touch(const struct table *table, uint64_t *slot, uint32_t thread, bool is_write)
{
    uint64_t *seen = slot + 1;
    uint32_t bit = thread + 16;
    unsigned tag = (uint16_t)seen[0];
    int writer = (int)tag - 2;
    bool known = seen[bit / 64] >> bit % 64 & 1;
    if (writer < 0 || (uint32_t)writer == thread || known)
        writer = -1;
    if (is_write) {
        for (size_t w = 1; w < table->seen_words; w++)
            seen[w] = 0;
        seen[0] = thread + 2;
    }
    seen[bit / 64] |= 1ull << bit % 64;
    if (table->pairs) {
        uint64_t *touched = seen + table->seen_words, *wrote = touched + table->set_words;
        touched[thread / 64] |= 1ull << thread % 64;
        if (is_write)
            wrote[thread / 64] |= 1ull << thread % 64;
    }
    return writer;
}

static void count_batch(struct table *table, uint32_t threads, uint32_t *events, size_t count,
                        const uint64_t *addr, const uint16_t *thread, const uint8_t *is_write,
                        const uint8_t *group)
{
    uint64_t hash[BATCH];
    for (size_t i = 0; i < count; i++) {
        hash[i] = block_hash(addr[i] >> table->shift);
        __builtin_prefetch(table->word + (hash[i] & (table->slots - 1)) * table->stride, 1);
    }
    for (size_t i = 0; i < count; i++) {
        if (!table_keeps(table, hash[i]))
            continue;
        uint64_t *slot = table_slot(table, addr[i] >> table->shift, hash[i]);
        int writer = touch(table, slot, thread[i], is_write[i]);
        if (writer >= 0)
            events[((size_t)group[i] * threads + (uint32_t)writer) * threads + thread[i]] += 1u << table->thinned;
    }
}

/* Samples in order of time, going on where the last call ended: 0, or -1 when memory is out. The caller has
 * checked that threads and groups are in range. */
int counter_add(struct counter *counter, size_t count, const uint64_t *addr, const uint16_t *thread,
                const uint8_t *is_write, const uint8_t *group)
{
    size_t matrices = (size_t)counter->groups * counter->threads * counter->threads;
    for (uint32_t s = 0; s < counter->scales; s++)
        for (size_t at = 0; at < count; at += BATCH) {
            size_t part = count - at < BATCH ? count - at : BATCH;
            if (!table_reserve(&counter->table[s], part))
                return -1;
            count_batch(&counter->table[s], counter->threads, counter->events + s * matrices, part, addr + at,
                        thread + at, is_write + at, group + at);
        }
    return 0;
}

/* out: groups x threads x threads events [writer][reader] at one scale. */
void counter_events(const struct counter *counter, uint32_t scale, double *out)
{
    size_t matrices = (size_t)counter->groups * counter->threads * counter->threads;
    for (size_t i = 0; i < matrices; i++)
        out[i] = counter->events[scale * matrices + i];
}

static void add_pairs(const struct table *table, const uint64_t *slot, uint32_t threads, double *out)
{
    const uint64_t *touched = slot + 1 + table->seen_words, *wrote = touched + table->set_words;
    for (uint32_t w = 0; w < threads; w++) {
        if (!(wrote[w / 64] >> w % 64 & 1))
            continue;
        for (size_t word = 0; word < table->set_words; word++)
            for (uint64_t left = touched[word]; left; left &= left - 1) {
                uint32_t t = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(left);
                bool counted_there = wrote[t / 64] >> t % 64 & 1 && t < w;
                if (t != w && !counted_there)
                    out[(size_t)w * threads + t] += (double)(1ull << table->thinned);
            }
    }
}

/* out: groups x threads x threads: blocks that one of the pair wrote and the other touched, each block once a
 * pair; the groups are by block. */
void counter_pairs(const struct counter *counter, uint32_t scale, double *out)
{
    const struct table *table = &counter->table[scale];
    size_t matrix = (size_t)counter->threads * counter->threads;
    memset(out, 0, counter->groups * matrix * sizeof *out);
    for (size_t i = 0; table->pairs && i < table->slots; i++) {
        const uint64_t *slot = table->word + i * table->stride;
        if ((uint16_t)slot[1] != 0)
            add_pairs(table, slot, counter->threads, out + (block_hash(slot[0]) >> 8) % counter->groups * matrix);
    }
}

/* How many blocks one scale holds, and of how many (2^thinned) each kept one stands for. */
void counter_facts(const struct counter *counter, uint32_t scale, uint64_t *blocks, uint32_t *thinned)
{
    *blocks = counter->table[scale].used;
    *thinned = counter->table[scale].thinned;
}
