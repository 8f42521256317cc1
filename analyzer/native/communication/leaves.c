/* Halving the roots, and counting what happens in their leaves.
 *
 * How many transfers the samples of a leaf stand for: what passes between two threads are lines, and a line that is
 * used much while it is there passes no more often. So in a leaf of several lines each line counts once in which an
 * event between the two was seen. That alone knows nothing of how often the lines pass, for which there is no more than
 * a hint: of the samples of the thread that comes seldom, those in different stretches of time may be of different
 * passings, those in the same stretch hardly. The root of the root of that share is what holds on real programs
 * (docs/results/communication.md). In a leaf of one line each event was a passing; but on lines that are polled one
 * sees as many as there are samples, so their number counts a little less.
 */
#include "leaves.h"

#include "communication.h"

#include <math.h>
#include <stdlib.h>

enum {
    LINES = 1 << (ROOT_SHIFT - LINE_SHIFT),
    THREAD_BITS = 11,
    WHO_BITS = THREAD_BITS + 1,
    LINE_AT = 64 - 14,
    LANES = 4,
    LINE_SLOTS = 4 * MOST_BUDGET
};

/* A sample within its root: line (14 bits) | number (24 bits, order of time) | thread | whether it wrote. */
typedef uint64_t visit;

static inline unsigned line_of(visit v) { return (unsigned)(v >> LINE_AT); }
static inline uint32_t number_of(visit v) { return (uint32_t)(v >> WHO_BITS) & (MAX_SAMPLES - 1); }
static inline unsigned thread_of(visit v) { return (unsigned)(v >> 1) & ((1u << THREAD_BITS) - 1); }
static inline bool wrote(visit v) { return v & 1; }

/* Of the last leaf and window in which the two had an event: events, lines and windows of them in that leaf. */
struct pair {
    uint32_t leaf, window, events, lines, windows;
};

struct counting {
    const struct comm_layers *layers;
    const struct comm_samples *samples;
    uint64_t root;
    uint32_t *by_thread;         /* samples of a block by thread (LANES each), all zero between uses */
    uint32_t *seen, epoch;       /* seen[t] == epoch: t has touched the leaf since its last write */
    uint32_t *samples_of;        /* of the leaf by thread, all zero between uses */
    struct pair *pairs;          /* [lower thread][higher thread] */
    size_t *met, met_count;      /* the pairs with events in the leaf */
    uint32_t leaf, window;
    uint64_t lines[LINE_SLOTS];  /* leaf, line, pair of the events in it: what is of other leaves counts as free */
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

static inline size_t entry_of(const struct comm_layers *layers, unsigned budget, uint64_t group, size_t pair) {
    return (budget * layers->groups + group) * layers->threads * layers->threads + pair;
}

/* Whether the leaf's line is new to the pair. In a leaf of several lines each event has a sample next to it by another
 * than the main thread, of which there are at most MOST_BUDGET: so there is room. */
static bool new_line(struct counting *counting, size_t pair, unsigned line) {
    uint64_t key = (uint64_t)counting->leaf << 36 | (uint64_t)line << 22 | pair;
    for (size_t slot = comm_block_hash(key) % LINE_SLOTS;; slot = (slot + 1) % LINE_SLOTS) {
        if (counting->lines[slot] == key) return false;
        if (counting->lines[slot] >> 36 == counting->leaf) continue;
        counting->lines[slot] = key;
        return true;
    }
}

static void meet(struct counting *counting, size_t index, unsigned line, bool one_line) {
    struct pair *pair = &counting->pairs[index];
    if (pair->leaf != counting->leaf) {
        *pair = (struct pair){.leaf = counting->leaf};
        counting->met[counting->met_count++] = index;
    }
    pair->events++;
    if (!one_line && new_line(counting, index, line)) pair->lines++;
    if (pair->window != counting->window) {
        pair->window = counting->window;
        pair->windows++;
    }
}

/* Of two threads of whose samples in the leaf the one has `seldom`, the other no fewer. */
static double transfers_of(const struct pair *pair, uint32_t seldom, bool one_line) {
    if (one_line) return pair->events / sqrt(sqrt(pair->events));
    return pair->lines * sqrt(sqrt((double)pair->windows / seldom));
}

static void add_transfers(struct counting *counting, uint64_t group, bool one_line, unsigned low, unsigned high) {
    const struct comm_layers *layers = counting->layers;
    while (counting->met_count > 0) {
        size_t index = counting->met[--counting->met_count];
        uint32_t one = counting->samples_of[index / layers->threads];
        uint32_t other = counting->samples_of[index % layers->threads];
        double transfers = transfers_of(&counting->pairs[index], one < other ? one : other, one_line);
        for (unsigned b = low; b < high; b++) layers->transfers[entry_of(layers, b, group, index)] += transfers;
    }
}

/* Count one leaf, for the budgets from `low` up to and without `high`. */
static void count_leaf(struct counting *counting, const visit *visits, size_t count, bool one_line, unsigned low,
                       unsigned high) {
    const struct comm_layers *layers = counting->layers;
    uint64_t block = (counting->root << ROOT_SHIFT >> LINE_SHIFT) + line_of(visits[0]);
    uint64_t window = UINT64_MAX;
    int writer = -1;
    counting->leaf++;
    counting->epoch++;
    for (size_t i = 0; i < count; i++) counting->samples_of[thread_of(visits[i])]++;
    for (size_t i = 0; i < count; i++) {
        unsigned thread = thread_of(visits[i]);
        if (writer >= 0 && (unsigned)writer != thread && counting->seen[thread] != counting->epoch) {
            uint64_t number = counting->samples->first + number_of(visits[i]);
            size_t one = (unsigned)writer < thread ? (unsigned)writer : thread;
            size_t other = (size_t)writer + thread - one, directed = (size_t)writer * layers->threads + thread;
            uint64_t turn = number / layers->event_window % layers->groups;
            for (unsigned b = low; b < high && layers->events; b++)
                layers->events[entry_of(layers, b, turn, directed)] += layers->weight[wrote(visits[i])];
            if (number / layers->pair_window != window) {
                window = number / layers->pair_window;
                counting->window++;
            }
            meet(counting, one * layers->threads + other, line_of(visits[i]), one_line);
        }
        if (wrote(visits[i])) {
            writer = (int)thread;
            counting->epoch++;
        }
        counting->seen[thread] = counting->epoch;
    }
    add_transfers(counting, (comm_block_hash(block) >> 28) % layers->groups, one_line, low, high);
    for (size_t i = 0; i < count; i++) counting->samples_of[thread_of(visits[i])] = 0;
}

/* A block whose visits are in order of time, for the budgets below `high`; `room`: as much, to halve it. */
static void count_block(struct counting *counting, visit *visits, visit *room, size_t count, unsigned high) {
    const struct comm_layers *layers = counting->layers;
    struct use use = use_of(counting, visits, count);
    if (use.minority == 0 || !use.written) return;
    unsigned low = high;
    while (low > 0 && (use.differ == 0 || layers->budget[low - 1] >= use.minority)) low--;
    if (low < high) count_leaf(counting, visits, count, use.differ == 0, low, high);
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
    counting->root = comm_place_of(samples, order[0]) >> ROOT_SHIFT;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = order[i], line = comm_place_of(samples, number) >> LINE_SHIFT & (LINES - 1);
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
    counting->samples_of = calloc(threads, sizeof *counting->samples_of);
    counting->pairs = calloc(threads * threads, sizeof *counting->pairs);
    counting->met = calloc(threads * threads, sizeof *counting->met);
    return counting->by_thread && counting->seen && counting->samples_of && counting->pairs && counting->met;
}

static void counting_free(struct counting *counting) {
    free(counting->by_thread);
    free(counting->seen);
    free(counting->samples_of);
    free(counting->pairs);
    free(counting->met);
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
