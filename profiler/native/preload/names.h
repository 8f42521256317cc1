/* Names are known by their hash, FNV-1a: processes, creation paths, modules. */
#ifndef NUMAPLAN_NAMES_H
#define NUMAPLAN_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define NP_HASH_START 14695981039346656037ull

static inline uint64_t np_hash(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * 1099511628211ull;
    return hash;
}

#define np_hash_of(literal) np_hash(NP_HASH_START, literal, sizeof(literal) - 1)

/* The hash of "NAME.NUMBER" from that of "NAME". */
static inline uint64_t np_hash_child(uint64_t hash, uint32_t number) {
    char digits[12];
    int at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    digits[--at] = '.';
    return np_hash(hash, digits + at, sizeof digits - (size_t)at);
}

#endif
