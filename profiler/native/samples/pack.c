/* Several columns of a trace's samples into one word a sample.
 *
 * Which column goes where is decided in Python (profiler/trace/packing.py); here is only the loop.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A column: `width` bytes a value (negative: signed). Value - base stands in `bits` bits from `shift` on. */
struct field {
    const void *values;
    uint64_t base;
    int32_t width;
    int32_t shift;
    int32_t bits;
    int32_t reserved;
};

/* Adds one column to the words; what does not fit into its bits is or-ed into the answer. */
#define ADD(type, wide)                                                 \
    do {                                                                \
        const type *const values = (const type *)field->values + start; \
        for (int64_t i = 0; i < count; i++) {                           \
            const uint64_t value = (uint64_t)(wide)values[i] - base;    \
            beyond |= value;                                            \
            words[i] |= value << shift;                                 \
        }                                                               \
    } while (0)

static uint64_t add(const struct field *field, int64_t start, int64_t count, uint64_t *words) {
    const uint64_t base = field->base;
    const int shift = field->shift;
    uint64_t beyond = 0;
    switch (field->width) {
    case 8: ADD(uint64_t, uint64_t); break;
    case 4: ADD(uint32_t, uint32_t); break;
    case -4: ADD(int32_t, int64_t); break;
    case 2: ADD(uint16_t, uint16_t); break;
    case -2: ADD(int16_t, int64_t); break;
    case -1: ADD(int8_t, int64_t); break;
    default: ADD(uint8_t, uint8_t);
    }
    return field->bits < 64 ? beyond >> field->bits : 0;
}

/* Pack `count` rows of the columns into words of `width` (8 or 4) bytes. Returns 1, or 0 as soon as a value
 * does not fit: what is in `out` then is of no use. */
int samples_pack(const struct field *fields, int64_t field_count, int64_t count, int64_t width, void *out) {
    enum { BLOCK = 1024 };
    uint64_t words[BLOCK];
    for (int64_t start = 0; start < count; start += BLOCK) {
        const int64_t rows = count - start < BLOCK ? count - start : BLOCK;
        uint64_t beyond = 0;
        memset(words, 0, sizeof words);
        for (int64_t f = 0; f < field_count; f++) beyond |= add(&fields[f], start, rows, words);
        if (beyond) return 0;
        if (width == 8) memcpy((uint64_t *)out + start, words, (size_t)rows * sizeof *words);
        else
            for (int64_t i = 0; i < rows; i++) ((uint32_t *)out)[start + i] = (uint32_t)words[i];
    }
    return 1;
}
