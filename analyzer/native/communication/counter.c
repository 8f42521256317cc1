/* Counting events: samples in order of time, in batches so that the cache misses of the table overlap. */
#include "communication.h"

#include <stdlib.h>

enum { BATCH = 128 };

struct counter *counter_new(uint32_t threads, uint32_t shift, uint64_t max_bytes)
{
    if (threads == 0 || threads > MAX_THREADS || shift >= 64)
        return NULL;
    struct counter *counter = calloc(1, sizeof *counter);
    if (!counter)
        return NULL;
    counter->threads = threads;
    counter->events = calloc((size_t)threads * threads, sizeof *counter->events);
    if (counter->events && table_init(&counter->table, shift, threads, max_bytes))
        return counter;
    counter_free(counter);
    return NULL;
}

void counter_free(struct counter *counter)
{
    if (!counter)
        return;
    free(counter->table.word);
    free(counter->events);
    free(counter);
}

/* One sample in its block: the writer it communicates with, or -1; then the block's new state. */
static int touch(const struct table *table, uint64_t *slot, uint32_t thread, bool is_write)
{
    uint64_t *seen = slot + 1;
    uint32_t bit = thread + 16;
    int writer = (int)(uint16_t)seen[0] - 2;
    bool known = seen[bit / 64] >> bit % 64 & 1;
    if (writer < 0 || (uint32_t)writer == thread || known)
        writer = -1;
    if (is_write) {
        for (size_t w = 1; w < table->seen_words; w++)
            seen[w] = 0;
        seen[0] = thread + 2;
    }
    seen[bit / 64] |= 1ull << bit % 64;
    return writer;
}

static void count_batch(struct counter *counter, size_t count, const uint64_t *addr, const uint16_t *thread,
                        const uint8_t *is_write)
{
    struct table *table = &counter->table;
    uint64_t hash[BATCH];
    for (size_t i = 0; i < count; i++) {
        hash[i] = block_hash(addr[i] >> table->shift);
        __builtin_prefetch(table_home(table, hash[i]), 1);
    }
    for (size_t i = 0; i < count; i++) {
        if (!table_keeps(table, hash[i]))
            continue;
        uint64_t *slot = table_slot(table, addr[i] >> table->shift, hash[i]);
        int writer = touch(table, slot, thread[i], is_write[i]);
        if (writer >= 0)
            counter->events[(size_t)writer * counter->threads + thread[i]] += 1u << table->thinned;
    }
}

/* Samples in order of time, going on where the last call ended: 0, or -1 when memory is out. The caller has
 * checked that threads are in range. */
int counter_add(struct counter *counter, size_t count, const uint64_t *addr, const uint16_t *thread,
                const uint8_t *is_write)
{
    for (size_t at = 0; at < count; at += BATCH) {
        size_t part = count - at < BATCH ? count - at : BATCH;
        if (!table_reserve(&counter->table, part))
            return -1;
        count_batch(counter, part, addr + at, thread + at, is_write + at);
    }
    return 0;
}

/* out: threads x threads events [writer][reader]. */
void counter_events(const struct counter *counter, double *out)
{
    for (size_t i = 0; i < (size_t)counter->threads * counter->threads; i++)
        out[i] = (double)counter->events[i];
}

/* How many blocks are held, and of how many (2^thinned) each kept one stands for. */
void counter_facts(const struct counter *counter, uint64_t *blocks, uint32_t *thinned)
{
    *blocks = counter->table.used;
    *thinned = counter->table.thinned;
}
