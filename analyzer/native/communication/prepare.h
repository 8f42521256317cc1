/* Samples as a trace has them, and as the counters take them. Arrays of the same length, in order of time. */
#ifndef NUMAPLAN_PREPARE_H
#define NUMAPLAN_PREPARE_H

#include <stddef.h>
#include <stdint.h>

struct comm_raw_samples {
    size_t count;
    const int64_t *time;
    const int32_t *thread;
    const uint64_t *key;
    const uint8_t *is_write;
};

/* Room for one more than are kept. */
struct comm_kept_samples {
    int64_t *time;
    uint16_t *thread;
    uint64_t *key;
    uint8_t *is_write;
};

/* cell: [slice][thread]; slices of `width` ns from `start` on; what lies outside counts at the ends. */
struct comm_timeline {
    int64_t start, width, slices, threads;
    double *cell;
};

enum { MOST_KINDS = 1 << 16 };

/* Add to (MOST_KINDS,) counts by kind, which is event times `levels` plus level. */
void comm_kinds_count(uint64_t *counts, size_t count, const uint8_t *event, const uint8_t *level, uint32_t levels);

/* Add the chosen samples (NULL: all) to (threads,) counts. Threads are in range. */
void comm_threads_count(uint64_t *counts, size_t count, const int32_t *thread, const uint8_t *chosen);

/* The chosen samples; how many they are. */
size_t comm_samples_choose(const struct comm_raw_samples *from, const uint8_t *chosen,
                           const struct comm_kept_samples *to);

/* Count the chosen samples (NULL: all) by slice and thread, each by its weight (NULL: one). Threads are in range. */
void comm_timeline_count(const struct comm_timeline *line, size_t count, const int64_t *time, const int32_t *thread,
                         const double *weight, const uint8_t *chosen);

#endif
