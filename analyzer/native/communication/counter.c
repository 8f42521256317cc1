/* Counting events: samples in order of time, in batches so that the cache misses of the table overlap. */
#include "communication.h"

#include <stdlib.h>

enum { BATCH = 128 };

struct comm_counter *comm_counter_new(uint32_t threads, uint32_t shift, uint64_t max_bytes) {
    if (threads == 0 || threads > MAX_THREADS || shift >= 64) return NULL;
    struct comm_counter *counter = calloc(1, sizeof *counter);
    if (!counter) return NULL;
    counter->threads = threads;
    counter->events = calloc((size_t)threads * threads, sizeof *counter->events);
    if (counter->events && comm_table_init(&counter->table, shift, threads, max_bytes)) return counter;
    comm_counter_free(counter);
    return NULL;
}

void comm_counter_free(struct comm_counter *counter) {
    if (!counter) return;
    free(counter->table.word);
    free(counter->events);
    free(counter);
}

/* One sample in its block: the writer it communicates with, or -1; then the block's new state. */
static int touch(const struct comm_table *table, uint64_t *slot, uint32_t thread, bool is_write) {
    uint64_t *seen = slot + 1;
    uint32_t bit = thread + 16;
    int writer = (int)(uint16_t)seen[0] - 2;
    bool known = seen[bit / 64] >> bit % 64 & 1;
    if (writer < 0 || (uint32_t)writer == thread || known) writer = -1;
    if (is_write) {
        for (size_t w = 1; w < table->seen_words; w++) seen[w] = 0;
        seen[0] = thread + 2;
    }
    seen[bit / 64] |= 1ull << bit % 64;
    return writer;
}

static void count_in_bin(const struct comm_bins *bins, int64_t time, uint32_t threads, uint32_t one, uint32_t other,
                         int32_t amount) {
    int64_t bin = (time - bins->start) / bins->width;
    bin = bin < 0 ? 0 : bin < bins->count ? bin : bins->count - 1;
    size_t low = one < other ? one : other, high = one + other - low;
    bins->cell[(size_t)bin * bins->pairs + low * (2 * threads - low - 1) / 2 + high - low - 1] += amount;
}

static void count_batch(struct comm_counter *counter, size_t count, const uint64_t *addr, const uint16_t *thread,
                        const uint8_t *is_write, const int64_t *time, const struct comm_bins *bins) {
    struct comm_table *table = &counter->table;
    uint64_t hash[BATCH];
    for (size_t i = 0; i < count; i++) {
        hash[i] = comm_block_hash(addr[i] >> table->shift);
        __builtin_prefetch(comm_table_home(table, hash[i]), 1);
    }
    for (size_t i = 0; i < count; i++) {
        if (!comm_table_keeps(table, hash[i])) continue;
        uint64_t *slot = comm_table_slot(table, addr[i] >> table->shift, hash[i]);
        int writer = touch(table, slot, thread[i], is_write[i]);
        if (writer < 0) continue;
        counter->events[(size_t)writer * counter->threads + thread[i]] += 1u << table->thinned;
        if (bins) count_in_bin(bins, time[i], counter->threads, (uint32_t)writer, thread[i], 1 << table->thinned);
    }
}

int comm_counter_add(struct comm_counter *counter, size_t count, const uint64_t *addr, const uint16_t *thread,
                     const uint8_t *is_write, const int64_t *time, const struct comm_bins *bins) {
    for (size_t at = 0; at < count; at += BATCH) {
        size_t part = count - at < BATCH ? count - at : BATCH;
        if (!comm_table_reserve(&counter->table, part)) return -1;
        count_batch(counter, part, addr + at, thread + at, is_write + at, bins ? time + at : NULL, bins);
    }
    return 0;
}

/* out: threads x threads events [writer][reader]. */
void comm_counter_events(const struct comm_counter *counter, double *out) {
    for (size_t i = 0; i < (size_t)counter->threads * counter->threads; i++) out[i] = (double)counter->events[i];
}

/* How many blocks are held, and how many (2^thinned) each kept one represents. */
void comm_counter_facts(const struct comm_counter *counter, uint64_t *blocks, uint32_t *thinned) {
    *blocks = counter->table.used;
    *thinned = counter->table.thinned;
}
