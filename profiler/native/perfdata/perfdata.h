#ifndef NUMAPLAN_PERFDATA_H
#define NUMAPLAN_PERFDATA_H

#include <stdint.h>
#include <string.h>

static inline uint64_t perfdata_read64(const uint8_t *at, int swap) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return swap ? __builtin_bswap64(value) : value;
}

/* A column to fill: `width` bytes at `offset` from each position (-4: a signed word), as 64 bits into `out`. */
struct perfdata_field {
    int64_t offset;
    int64_t width;
    uint64_t *out;
};

/* Copy fields of `count` records into columns; into rows `rows` of them, or the first ones when it is NULL. */
void perfdata_gather(const uint8_t *base, const int64_t *positions, const int64_t *rows, int64_t count,
                     const struct perfdata_field *fields, int64_t field_count, int swap);

#endif
