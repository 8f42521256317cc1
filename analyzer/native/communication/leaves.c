/* Halving the roots, and counting what happens in their leaves. */
#include "leaves.h"

#include "communication.h"

#include <stdlib.h>

enum {
    LINES = 1 << (ROOT_SHIFT - LINE_SHIFT),
    THREAD_BITS = 11,
    WHO_BITS = THREAD_BITS + 1,
    LINE_AT = 64 - 14,
    LANES = 4
};

/* A sample within its root: line (14 bits) | number (24 bits, order of time) | thread | whether it wrote. */
typedef uint64_t visit;

static inline unsigned line_of(visit v) { return (unsigned)(v >> LINE_AT); }
static inline uint32_t number_of(visit v) { return (uint32_t)(v >> WHO_BITS) & (MAX_SAMPLES - 1); }
static inline unsigned thread_of(visit v) { return (unsigned)(v >> 1) & ((1u << THREAD_BITS) - 1); }
static inline bool wrote(visit v) { return v & 1; }

struct counting {
    const struct comm_layers *layers;
    const struct comm_samples *samples;
    uint64_t root;
    uint32_t *by_thread;         /* samples of a block by thread (LANES each), all zero between uses */
    uint32_t *seen, epoch;       /* seen[t] == epoch: t has touched the leaf since its last write */
    uint32_t *met, *met_now;     /* of pairs: the leaf, and the window of a leaf, of their last event */
    uint32_t leaf, window;
};

/* What a walk over a block tells: samples by others than the thread with most, lines that differ, any write. */
struct use {
    uint32_t minority;
    unsigned differ;
    bool written;
};

/* Samples of the thread that has most; few samples: walked once more to clear what they counted. */
static uint32_t most_of_few(uint32_t *by_thread, const visit *visits, size_t count) {
    uint32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t now = ++by_thread[thread_of(visits[i])];
        most = now > most ? now : most;
    }
    for (size_t i = 0; i < count; i++) by_thread[thread_of(visits[i])] = 0;
    return most;
}

/* The same of many: by turns in LANES counters each, as a thread's samples come in a row and would wait for one. */
static uint32_t most_of_many(uint32_t *by_thread, uint32_t threads, const visit *visits, size_t count) {
    uint32_t most = 0;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (unsigned lane = 0; lane < LANES; lane++) by_thread[thread_of(visits[i + lane]) * LANES + lane]++;
    for (; i < count; i++) by_thread[thread_of(visits[i]) * LANES]++;
    for (uint32_t t = 0; t < threads; t++) {
        uint32_t sum = 0;
        for (unsigned lane = 0; lane < LANES; lane++) {
            sum += by_thread[t * LANES + lane];
            by_thread[t * LANES + lane] = 0;
        }
        most = sum > most ? sum : most;
    }
    return most;
}

static struct use use_of(struct counting *counting, const visit *visits, size_t count) {
    visit either = 0, differ = 0;
    uint32_t threads = counting->layers->threads;
    for (size_t i = 0; i < count; i++) {
        either |= visits[i];
        differ |= visits[i] ^ visits[0];
    }
    uint32_t most = count < (size_t)LANES * threads ? most_of_few(counting->by_thread, visits, count)
                                                    : most_of_many(counting->by_thread, threads, visits, count);
    return (struct use){(uint32_t)count - most, line_of(differ), wrote(either)};
}

/* Add to [group][writer][reader] for each budget from `low` up to and without `high`. */
static inline void add(const struct comm_layers *layers, uint32_t *counts, unsigned low, unsigned high, uint64_t group,
                       size_t pair, uint32_t amount) {
    size_t matrix = (size_t)layers->threads * layers->threads;
    for (unsigned b = low; b < high; b++) counts[(b * layers->groups + group) * matrix + pair] += amount;
}

/* Count one leaf, for all budgets that have it. */
static void count_leaf(struct counting *counting, const visit *visits, size_t count, unsigned low, unsigned high) {
    const struct comm_layers *layers = counting->layers;
    uint64_t block = (counting->root << ROOT_SHIFT >> LINE_SHIFT) + line_of(visits[0]);
    uint64_t group = (comm_block_hash(block) >> 28) % layers->groups, window = UINT64_MAX;
    int writer = -1;
    counting->leaf++;
    counting->epoch++;
    for (size_t i = 0; i < count; i++) {
        unsigned thread = thread_of(visits[i]);
        if (writer >= 0 && (unsigned)writer != thread && counting->seen[thread] != counting->epoch) {
            uint64_t number = counting->samples->first + number_of(visits[i]);
            size_t one = (unsigned)writer < thread ? (unsigned)writer : thread;
            size_t other = (size_t)writer + thread - one, pair = one * layers->threads + other;
            add(layers, layers->events, low, high, number / layers->event_window % layers->groups,
                (size_t)writer * layers->threads + thread, layers->weight[wrote(visits[i])]);
            if (counting->met[pair] != counting->leaf) {
                counting->met[pair] = counting->leaf;
                add(layers, layers->once, low, high, group, pair, 1);
            }
            if (number / layers->pair_window != window) {
                window = number / layers->pair_window;
                counting->window++;
            }
            if (counting->met_now[pair] != counting->window) {
                counting->met_now[pair] = counting->window;
                add(layers, layers->windowed, low, high, group, pair, 1);
            }
        }
        if (wrote(visits[i])) {
            writer = (int)thread;
            counting->epoch++;
        }
        counting->seen[thread] = counting->epoch;
    }
}

/* A block whose visits are in order of time, for the budgets below `high`; `room`: as much, to halve it. */
static void count_block(struct counting *counting, visit *visits, visit *room, size_t count, unsigned high) {
    const struct comm_layers *layers = counting->layers;
    struct use use = use_of(counting, visits, count);
    if (use.minority == 0 || !use.written) return;
    unsigned low = high;
    while (low > 0 && (use.differ == 0 || layers->budget[low - 1] >= use.minority)) low--;
    if (low < high) count_leaf(counting, visits, count, low, high);
    if (low == 0) return;
    /* On to the size at which lines part; above it a half is empty. Stable, so that order of time is kept: the
     * lower half closes up where it stands, the upper one goes into the room. */
    unsigned bit = LINE_AT + 31 - (unsigned)__builtin_clz(use.differ);
    size_t left = 0, right = 0;
    for (size_t i = 0; i < count; i++) { /* without a branch, which nobody could foretell */
        visit v = visits[i];
        size_t up = v >> bit & 1;
        visits[left] = v;
        room[right] = v;
        right += up;
        left += 1 - up;
    }
    count_block(counting, visits, room + right, left, low);
    count_block(counting, room, visits + left, right, low);
}

static void count_root(struct counting *counting, const uint32_t *order, size_t count, visit *visits) {
    const struct comm_samples *samples = counting->samples;
    counting->root = samples->addr[order[0]] >> ROOT_SHIFT;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = order[i], line = samples->addr[number] >> LINE_SHIFT & (LINES - 1);
        visits[i] = line << LINE_AT | number << WHO_BITS | (uint64_t)samples->thread[number] << 1 |
                    (samples->is_write[number] != 0);
    }
    count_block(counting, visits, visits + count, count, counting->layers->budgets);
}

static bool counting_init(struct counting *counting, const struct comm_layers *layers,
                          const struct comm_samples *samples) {
    size_t threads = layers->threads;
    *counting = (struct counting){.layers = layers, .samples = samples};
    counting->by_thread = calloc(threads * LANES, sizeof *counting->by_thread);
    counting->seen = calloc(threads, sizeof *counting->seen);
    counting->met = calloc(threads * threads, sizeof *counting->met);
    counting->met_now = calloc(threads * threads, sizeof *counting->met_now);
    return counting->by_thread && counting->seen && counting->met && counting->met_now;
}

static void counting_free(struct counting *counting) {
    free(counting->by_thread);
    free(counting->seen);
    free(counting->met);
    free(counting->met_now);
}

static size_t largest(const struct comm_roots *roots) {
    size_t most = 0;
    for (size_t r = 0; r < roots->count; r++)
        if (roots->start[r + 1] - roots->start[r] > most) most = roots->start[r + 1] - roots->start[r];
    return most;
}

/* Samples in order of time: 0, or -1 when memory is out or they are too many. The caller has checked that threads
 * are in range. */
int comm_leaves_count(const struct comm_layers *layers, const struct comm_samples *samples) {
    struct comm_roots roots = {0};
    struct counting counting = {0};
    visit *visits = NULL;
    if (samples->count > MAX_SAMPLES || layers->threads > MAX_THREADS) return -1;
    bool whole = comm_roots_find(&roots, samples) && counting_init(&counting, layers, samples);
    if (whole) {
        visits = malloc((2 * largest(&roots) + 1) * sizeof *visits);
        whole = visits != NULL;
    }
    for (size_t r = 0; whole && r < roots.count; r++)
        count_root(&counting, roots.order + roots.start[r], roots.start[r + 1] - roots.start[r], visits);
    free(visits);
    counting_free(&counting);
    comm_roots_free(&roots);
    return whole ? 0 : -1;
}
