#include "online.h"

void online_pair(int64_t entries, const int64_t *page, const int64_t *thread, const double *weight, int64_t threads,
                 double *matrix) {
    for (int64_t first = 0, end; first < entries; first = end) {
        for (end = first + 1; end < entries && page[end] == page[first];) end++;
        for (int64_t a = first; a < end; a++)
            for (int64_t b = first; b < end; b++) matrix[thread[a] * threads + thread[b]] += weight[a] * weight[b];
    }
}
