/* What is done to every sample before it is counted: choosing those that may be communication, and the timeline. */
#include "prepare.h"

size_t comm_samples_choose(const struct comm_raw_samples *from, const uint8_t *chosen,
                           const struct comm_kept_samples *to) {
    size_t kept = 0;
    for (size_t i = 0; i < from->count; i++) { /* written always and kept if chosen: no branch to foretell */
        to->time[kept] = from->time[i];
        to->key[kept] = from->key[i];
        to->thread[kept] = (uint16_t)from->thread[i];
        to->is_write[kept] = from->is_write[i] != 0;
        kept += chosen[i] != 0;
    }
    return kept;
}

void comm_kinds_count(uint64_t *counts, size_t count, const uint8_t *event, const uint8_t *level, uint32_t levels) {
    for (size_t i = 0; i < count; i++) counts[(event[i] * levels + level[i]) % MOST_KINDS]++;
}

void comm_threads_count(uint64_t *counts, size_t count, const int32_t *thread, const uint8_t *chosen) {
    for (size_t i = 0; i < count; i++) counts[thread[i]] += !chosen || chosen[i] != 0;
}

void comm_timeline_count(const struct comm_timeline *line, size_t count, const int64_t *time, const int32_t *thread,
                         const double *weight, const uint8_t *chosen) {
    int64_t begin = 1, end = 0; /* of the slice that the sample before was in */
    double *row = line->cell;
    for (size_t i = 0; i < count; i++) {
        if (chosen && !chosen[i]) continue;
        if (time[i] < begin || time[i] >= end) {
            int64_t slice = time[i] < line->start ? 0 : (time[i] - line->start) / line->width;
            slice = slice < line->slices ? slice : line->slices - 1;
            begin = line->start + slice * line->width;
            end = begin + line->width;
            row = line->cell + slice * line->threads;
        }
        row[thread[i]] += weight ? weight[i] : 1.0;
    }
}
