#include "online.h"

#include <stdlib.h>

enum { BITS = 11, DIGITS = 1 << BITS };

struct entry {
    uint64_t key;
    int64_t row;
};

/* One stable pass by the digit at `shift`; false when all have the same, and nothing was moved. */
static int pass(const struct entry *from, struct entry *to, int64_t count, int shift) {
    size_t place[DIGITS] = {0}, before = 0;
    for (int64_t i = 0; i < count; i++) place[from[i].key >> shift & (DIGITS - 1)]++;
    if (place[from[0].key >> shift & (DIGITS - 1)] == (size_t)count) return 0;
    for (int d = 0; d < DIGITS; d++) {
        size_t here = place[d];
        place[d] = before;
        before += here;
    }
    for (int64_t i = 0; i < count; i++) to[place[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
    return 1;
}

int64_t online_group(int64_t count, const int64_t *key, int64_t *group, int64_t *distinct) {
    struct entry *block = malloc(((size_t)count + 1) * 2 * sizeof *block), *from = block, *to = block + count;
    int64_t groups = 0;
    if (!block) return -1;
    for (int64_t i = 0; i < count; i++) from[i] = (struct entry){(uint64_t)key[i], i};
    for (int shift = 0; count > 0 && shift < 64; shift += BITS)
        if (pass(from, to, count, shift)) {
            struct entry *other = from;
            from = to;
            to = other;
        }
    for (int64_t i = 0; i < count; i++) {
        if (i == 0 || from[i].key != from[i - 1].key) distinct[groups++] = (int64_t)from[i].key;
        group[from[i].row] = groups - 1;
    }
    free(block);
    return groups;
}
