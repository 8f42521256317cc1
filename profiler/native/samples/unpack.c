/* The reverse of pack.c: columns out of words, a cache's worth of rows at a time. */
#include <stdint.h>

/* A column of `width` bytes a value: base + the `bits` bits from `shift` on of words of `word_width` bytes. */
struct column {
    const void *words;
    void *values;
    uint64_t base;
    int32_t word_width;
    int32_t width;
    int32_t shift;
    int32_t bits;
};

#define TAKE(type)                                                                                      \
    do {                                                                                                \
        type *const values = (type *)column->values + start;                                            \
        if (column->word_width == 8)                                                                    \
            for (int64_t i = 0; i < count; i++) values[i] = (type)((wide[i] >> shift & mask) + base);   \
        else                                                                                            \
            for (int64_t i = 0; i < count; i++) values[i] = (type)((narrow[i] >> shift & mask) + base); \
    } while (0)

static void take(const struct column *column, int64_t start, int64_t count) {
    const uint64_t *const wide = (const uint64_t *)column->words + start;
    const uint32_t *const narrow = (const uint32_t *)column->words + start;
    const uint64_t base = column->base, mask = column->bits < 64 ? ((uint64_t)1 << column->bits) - 1 : UINT64_MAX;
    const int shift = column->shift;
    switch (column->width) {
    case 8: TAKE(uint64_t); break;
    case 4: TAKE(uint32_t); break;
    case 2: TAKE(uint16_t); break;
    default: TAKE(uint8_t);
    }
}

/* The caller has checked that widths are 1, 2, 4 or 8 and that shift and bits lie within the words. */
void samples_unpack(const struct column *columns, int64_t column_count, int64_t count) {
    enum { BLOCK = 1024 };
    for (int64_t start = 0; start < count; start += BLOCK)
        for (int64_t c = 0; c < column_count; c++)
            take(&columns[c], start, count - start < BLOCK ? count - start : BLOCK);
}
