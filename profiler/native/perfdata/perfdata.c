/* The three inner loops of the perf.data decoder: walk record headers, look ids up, copy fields out.
 *
 * Everything that knows what a record means is in Python (profiler/perfdata). Positions are byte offsets from
 * `base`; callers have checked that what they ask to copy lies inside the buffer. Nothing is assumed aligned.
 */
#include "perfdata.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { HEADER = 8, SAMPLE = 9, COUNTED_TYPES = 256, CPUMODE = 7 };
enum treatment { SKIP = 0, REPORT = 1, STOP = 2 };
enum outcome { AT_END, FULL, STOPPED, TOO_SMALL, PAST_END };

/* One walk over records. `treatment` says for each type below 256 what to do with it (samples are always
 * reported, unknown types skipped); the arrays hold `room` entries each, sizes and modes those of samples. */
struct walk {
    const uint8_t *base;
    int64_t next, end;
    int64_t room;
    int64_t *samples, *others;
    int64_t *sizes;
    uint8_t *modes;
    int64_t sample_count, other_count;
    const uint8_t *treatment;
    int64_t *counts;
    int32_t swap;
};

static uint16_t read16(const uint8_t *at, int swap) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return swap ? __builtin_bswap16(value) : value;
}

static uint32_t read32(const uint8_t *at, int swap) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return swap ? __builtin_bswap32(value) : value;
}

/* Walk records from next to end; next is left at the record that ended the walk. */
int perfdata_walk(struct walk *walk) {
    const int swap = walk->swap;
    int64_t at = walk->next, samples = 0, others = 0;
    int outcome = AT_END;
    while (at < walk->end) {
        if (walk->end - at < HEADER) {
            outcome = PAST_END;
            break;
        }
        const uint32_t type = read32(walk->base + at, swap);
        const uint16_t size = read16(walk->base + at + 6, swap);
        if (size < HEADER || size > walk->end - at) {
            outcome = size < HEADER ? TOO_SMALL : PAST_END;
            break;
        }
        if (type == SAMPLE) {
            if (samples == walk->room) {
                outcome = FULL;
                break;
            }
            walk->samples[samples] = at;
            walk->sizes[samples] = size;
            walk->modes[samples++] = read16(walk->base + at + 4, swap) & CPUMODE;
        } else if (type < COUNTED_TYPES && walk->treatment[type] != SKIP) {
            if (walk->treatment[type] == STOP || others == walk->room) {
                outcome = walk->treatment[type] == STOP ? STOPPED : FULL;
                break;
            }
            walk->others[others++] = at;
        }
        walk->counts[type < COUNTED_TYPES ? type : COUNTED_TYPES]++;
        at += size;
    }
    walk->next = at;
    walk->sample_count = samples;
    walk->other_count = others;
    return outcome;
}

static uint64_t field_value(const uint8_t *at, int64_t width, int swap) {
    switch (width) {
    case 8: return perfdata_read64(at, swap);
    case -4: return (uint64_t)(int64_t)(int32_t)read32(at, swap);
    case 4: return read32(at, swap);
    default: return read16(at, swap);
    }
}

void perfdata_gather(const uint8_t *base, const int64_t *positions, const int64_t *rows, int64_t count,
                     const struct perfdata_field *fields, int64_t field_count, int swap) {
    /* Blocks that fit a small cache, then column by column: each inner loop is branch-free and prefetchable. */
    enum { BLOCK = 512 };
    for (int64_t start = 0; start < count; start += BLOCK) {
        const int64_t stop = count - start < BLOCK ? count : start + BLOCK;
        for (int64_t f = 0; f < field_count; f++) {
            const uint8_t *from = base + fields[f].offset;
            uint64_t *out = fields[f].out;
            const int64_t width = fields[f].width;
            if (width == 8 && !swap && rows == NULL)
                for (int64_t i = start; i < stop; i++) memcpy(&out[i], from + positions[i], sizeof *out);
            else
                for (int64_t i = start; i < stop; i++)
                    out[rows ? rows[i] : i] = field_value(from + positions[i], width, swap);
        }
    }
}

/* The value of each id by the ascending `keys`; `absent` for one that is not among them. */
void perfdata_lookup(const uint64_t *keys, const int32_t *values, int64_t key_count, const uint64_t *ids, int64_t count,
                     int32_t absent, int32_t *out) {
    int64_t last = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t id = ids[i];
        if (key_count > 0 && keys[last] == id) {
            out[i] = values[last];
            continue;
        }
        int64_t low = 0, high = key_count;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (keys[middle] < id) low = middle + 1;
            else high = middle;
        }
        const int found = low < key_count && keys[low] == id;
        out[i] = found ? values[low] : absent;
        if (found) last = low;
    }
}
