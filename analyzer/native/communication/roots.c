/* Samples brought together by the block of 2^ROOT_SHIFT bytes that they are in: a counting sort. */
#include "communication.h"
#include "leaves.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BITS = 10, NONE = UINT32_MAX };

/* From a root's address to its number, in order of first appearance. */
struct numbers {
    unsigned bits;
    uint32_t used;
    uint64_t *root;
    uint32_t *number;
};

static bool numbers_init(struct numbers *numbers, unsigned bits) {
    size_t slots = (size_t)1 << bits;
    *numbers = (struct numbers){.bits = bits};
    numbers->root = malloc(slots * sizeof *numbers->root);
    numbers->number = malloc(slots * sizeof *numbers->number);
    if (!numbers->root || !numbers->number) return false;
    memset(numbers->number, 0xff, slots * sizeof *numbers->number);
    return true;
}

static void numbers_free(struct numbers *numbers) {
    free(numbers->root);
    free(numbers->number);
}

/* The slot of a root, or the free one where it belongs. */
static size_t numbers_slot(const struct numbers *numbers, uint64_t root) {
    size_t mask = ((size_t)1 << numbers->bits) - 1;
    size_t slot = comm_block_hash(root) >> (64 - numbers->bits);
    while (numbers->number[slot] != NONE && numbers->root[slot] != root) slot = (slot + 1) & mask;
    return slot;
}

static bool numbers_grow(struct numbers *numbers) {
    struct numbers larger;
    if (!numbers_init(&larger, numbers->bits + 1)) {
        numbers_free(&larger);
        return false;
    }
    larger.used = numbers->used;
    for (size_t i = 0; i < (size_t)1 << numbers->bits; i++)
        if (numbers->number[i] != NONE) {
            size_t slot = numbers_slot(&larger, numbers->root[i]);
            larger.root[slot] = numbers->root[i];
            larger.number[slot] = numbers->number[i];
        }
    numbers_free(numbers);
    *numbers = larger;
    return true;
}

/* of[i]: the number of sample i's root; false when memory is out. */
static bool number_roots(struct numbers *numbers, const struct comm_samples *samples, uint32_t *of) {
    for (size_t i = 0; i < samples->count; i++) {
        uint64_t root = comm_place_of(samples, i) >> ROOT_SHIFT;
        size_t slot = numbers_slot(numbers, root);
        if (numbers->number[slot] == NONE) {
            if (numbers->used >= (uint32_t)1 << (numbers->bits - 1)) {
                if (!numbers_grow(numbers)) return false;
                slot = numbers_slot(numbers, root);
            }
            numbers->root[slot] = root;
            numbers->number[slot] = numbers->used++;
        }
        of[i] = numbers->number[slot];
    }
    return true;
}

bool comm_roots_find(struct comm_roots *roots, const struct comm_samples *samples) {
    struct numbers numbers;
    size_t count = samples->count;
    uint32_t *of = malloc((count + 1) * sizeof *of);
    *roots = (struct comm_roots){.order = malloc((count + 1) * sizeof *roots->order)};
    bool whole = numbers_init(&numbers, FIRST_BITS) && of && roots->order && number_roots(&numbers, samples, of);
    if (whole) {
        roots->count = numbers.used;
        roots->start = calloc((size_t)numbers.used + 2, sizeof *roots->start);
        whole = roots->start != NULL;
    }
    numbers_free(&numbers);
    if (whole) {
        /* Counted two places further on, so that filling leaves each start where it belongs. */
        uint32_t *next = roots->start + 1;
        for (size_t i = 0; i < count; i++) roots->start[of[i] + 2]++;
        for (size_t r = 1; r < roots->count; r++) next[r] += next[r - 1];
        for (size_t i = 0; i < count; i++) roots->order[next[of[i]]++] = (uint32_t)i;
    }
    free(of);
    return whole;
}

void comm_roots_free(struct comm_roots *roots) {
    free(roots->start);
    free(roots->order);
}
