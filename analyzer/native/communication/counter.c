/* Counting events: samples in order of time, in batches so that the cache misses of a table overlap; a stretch of
 * them at one scale after the other, so that tables do not push each other out of the caches all the time. */
#include "communication.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 128, STRETCH = 1 << 14 };

/* The sets of a slot, `words` words each. */
struct sets {
    uint64_t *window, *touched, *wrote, *now_touched, *now_wrote;
    size_t words;
};

static struct sets sets_of(const struct table *table, uint64_t *slot)
{
    uint64_t *first = slot + 1 + table->seen_words;
    size_t words = table->set_words;
    return (struct sets){first, first + 1, first + 1 + words, first + 1 + 2 * words, first + 1 + 3 * words, words};
}

static size_t matrices(const struct counter *counter)
{
    return (size_t)counter->groups * counter->threads * counter->threads;
}

/* Where the matrix of the group begins that a block belongs to. */
static size_t group_of(const struct counter *counter, uint64_t hash)
{
    return (hash >> 28) % counter->groups * counter->threads * counter->threads;
}

struct counter *counter_new(uint32_t threads, uint32_t scales, const uint8_t *shift, const uint8_t *pairs,
                            uint32_t groups, uint64_t event_window, uint64_t pair_window, uint64_t max_bytes)
{
    if (threads == 0 || threads > MAX_THREADS || scales > MAX_SCALES || groups == 0 || groups > MAX_GROUPS ||
        event_window == 0 || pair_window == 0)
        return NULL;
    struct counter *counter = calloc(1, sizeof *counter);
    if (!counter)
        return NULL;
    *counter = (struct counter){.threads = threads, .scales = scales, .groups = groups};
    counter->event_window = event_window;
    counter->pair_window = pair_window;
    counter->events = calloc(scales * matrices(counter), sizeof *counter->events);
    counter->windowed = calloc(scales * matrices(counter), sizeof *counter->windowed);
    bool whole = counter->events && counter->windowed;
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
    free(counter->windowed);
    free(counter);
}

/* For each writer w and other thread t that touched; of two threads that both wrote, only one order occurs. */
#define FOR_PAIRS(threads_wrote, threads_touched, count, w, t)                                                         \
    for (size_t w_word = 0; w_word < (count); w_word++)                                                                \
        for (uint64_t w_left = (threads_wrote)[w_word]; w_left; w_left &= w_left - 1)                                  \
            for (size_t t_word = 0, w = w_word * 64 + (size_t)__builtin_ctzll(w_left); t_word < (count); t_word++)     \
                for (uint64_t t_left = (threads_touched)[t_word], t; t_left; t_left &= t_left - 1)                     \
                    if ((t = t_word * 64 + (size_t)__builtin_ctzll(t_left)) != w &&                                    \
                        !(t < w && (threads_wrote)[t_word] >> t % 64 & 1))

/* A new window begins for a block: count the pairs of the last one, which then belong to the past. */
static void close_window(const struct table *table, struct sets set, uint32_t threads, uint32_t *counts)
{
    FOR_PAIRS(set.now_wrote, set.now_touched, set.words, w, t)
        counts[w * threads + t] += 1u << table->thinned;
    for (size_t i = 0; i < set.words; i++) {
        set.touched[i] |= set.now_touched[i];
        set.wrote[i] |= set.now_wrote[i];
        set.now_touched[i] = set.now_wrote[i] = 0;
    }
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

static void touch_sets(struct counter *counter, struct table *table, uint64_t *slot, uint64_t hash, uint64_t window,
                       uint32_t thread, bool is_write)
{
    struct sets set = sets_of(table, slot);
    if (*set.window != window) {
        size_t scale = (size_t)(table - counter->table);
        uint32_t *counts = counter->windowed + scale * matrices(counter) + group_of(counter, hash);
        close_window(table, set, counter->threads, counts);
        *set.window = window;
    }
    set.now_touched[thread / 64] |= 1ull << thread % 64;
    if (is_write)
        set.now_wrote[thread / 64] |= 1ull << thread % 64;
}

/* A stretch of samples, and the group of events and the window of pairs that each belongs to. */
struct stretch {
    size_t count;
    const uint64_t *addr;
    const uint16_t *thread;
    const uint8_t *is_write;
    uint32_t group[STRETCH], window[STRETCH];
};

static void find_places(const struct counter *counter, struct stretch *stretch)
{
    for (size_t i = 0; i < stretch->count; i++) {
        stretch->group[i] = (uint32_t)((counter->samples + i) / counter->event_window % counter->groups);
        stretch->window[i] = (uint32_t)((counter->samples + i) / counter->pair_window);
    }
}

static void count_batch(struct counter *counter, struct table *table, const struct stretch *part, size_t from,
                        size_t to)
{
    uint64_t hash[BATCH];
    uint32_t threads = counter->threads, step = 1u << table->thinned;
    uint32_t *events = counter->events + (size_t)(table - counter->table) * matrices(counter);
    for (size_t i = from; i < to; i++) {
        hash[i - from] = block_hash(part->addr[i] >> table->shift);
        __builtin_prefetch(table_home(table, hash[i - from]), 1);
    }
    for (size_t i = from; i < to; i++) {
        if (!table_keeps(table, hash[i - from]))
            continue;
        uint64_t *slot = table_slot(table, part->addr[i] >> table->shift, hash[i - from]);
        uint32_t thread = part->thread[i];
        int writer = touch(table, slot, thread, part->is_write[i]);
        if (writer >= 0)
            events[((size_t)part->group[i] * threads + (uint32_t)writer) * threads + thread] += step;
        if (table->pairs)
            touch_sets(counter, table, slot, hash[i - from], part->window[i], thread, part->is_write[i]);
    }
}

static bool count_stretch(struct counter *counter, const struct stretch *part)
{
    for (uint32_t s = 0; s < counter->scales; s++)
        for (size_t from = 0; from < part->count; from += BATCH) {
            size_t to = from + BATCH < part->count ? from + BATCH : part->count;
            if (!table_reserve(&counter->table[s], to - from))
                return false;
            count_batch(counter, &counter->table[s], part, from, to);
        }
    return true;
}

/* Samples in order of time, going on where the last call ended: 0, or -1 when memory is out. The caller has
 * checked that threads are in range. */
int counter_add(struct counter *counter, size_t count, const uint64_t *addr, const uint16_t *thread,
                const uint8_t *is_write)
{
    struct stretch *part = malloc(sizeof *part);
    bool whole = part != NULL;
    for (size_t at = 0; whole && at < count; at += STRETCH) {
        part->count = count - at < STRETCH ? count - at : STRETCH;
        part->addr = addr + at;
        part->thread = thread + at;
        part->is_write = is_write + at;
        find_places(counter, part);
        whole = count_stretch(counter, part);
        counter->samples += part->count;
    }
    free(part);
    return whole ? 0 : -1;
}

/* out: groups x threads x threads events [writer][reader] at one scale. */
void counter_events(const struct counter *counter, uint32_t scale, double *out)
{
    for (size_t i = 0; i < matrices(counter); i++)
        out[i] = counter->events[scale * matrices(counter) + i];
}

/* Call `body` for each block with its sets and the matrix of its group. */
static void each_block(const struct counter *counter, uint32_t scale, double *out,
                       void (*body)(const struct table *, struct sets, size_t threads, double *into))
{
    const struct table *table = &counter->table[scale];
    size_t n = counter->threads;
    for (size_t i = 0; table->pairs && i < table->slots; i++) {
        uint64_t *slot = table->word + i * table->stride;
        if ((uint16_t)slot[1] != 0)
            body(table, sets_of(table, slot), n, out + group_of(counter, block_hash(slot[0])));
    }
}

static void add_present(const struct table *table, struct sets set, size_t threads, double *into)
{
    FOR_PAIRS(set.now_wrote, set.now_touched, set.words, w, t)
        into[w * threads + t] += 1u << table->thinned;
}

static void add_ever(const struct table *table, struct sets set, size_t threads, double *into)
{
    uint64_t wrote[MAX_THREADS / 64], touched[MAX_THREADS / 64];
    for (size_t i = 0; i < set.words; i++) {
        wrote[i] = set.wrote[i] | set.now_wrote[i];
        touched[i] = set.touched[i] | set.now_touched[i];
    }
    FOR_PAIRS(wrote, touched, set.words, w, t)
        into[w * threads + t] += 1u << table->thinned;
}

/* out: groups x threads x threads: blocks that one of the pair wrote and the other touched, once a pair. */
void counter_pairs(const struct counter *counter, uint32_t scale, double *out)
{
    memset(out, 0, matrices(counter) * sizeof *out);
    each_block(counter, scale, out, add_ever);
}

/* The same counted in each window of samples. */
void counter_windowed(const struct counter *counter, uint32_t scale, double *out)
{
    for (size_t i = 0; i < matrices(counter); i++)
        out[i] = counter->windowed[scale * matrices(counter) + i];
    each_block(counter, scale, out, add_present);
}

/* How many blocks one scale holds, and of how many (2^thinned) each kept one stands for. */
void counter_facts(const struct counter *counter, uint32_t scale, uint64_t *blocks, uint32_t *thinned)
{
    *blocks = counter->table[scale].used;
    *thinned = counter->table[scale].thinned;
}
