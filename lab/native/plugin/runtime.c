#include "runtime.h"

#include "caches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES (UINT64_C(1) << PAGE_SHIFT)
#define FACTOR UINT64_C(0x9e3779b97f4a7c15) /* runtime.py has the same */

static struct lab_runtime_piece *pieces;
static size_t piece_count;

bool lab_runtime_open(const char *path) {
    FILE *file = fopen(path, "re");
    if (!file || fseek(file, 0, SEEK_END)) return false;
    long bytes = ftell(file);
    piece_count = bytes > 0 ? (size_t)bytes / sizeof *pieces : 0;
    pieces = malloc((piece_count + 1) * sizeof *pieces);
    bool read = pieces && !fseek(file, 0, SEEK_SET) && fread(pieces, sizeof *pieces, piece_count, file) == piece_count;
    fclose(file);
    return read;
}

static uint64_t sum_of(const uint8_t *page) {
    uint64_t sum = 0, word;
    for (size_t at = 0; at < PAGE_BYTES; at += sizeof word) {
        memcpy(&word, page + at, sizeof word);
        sum = (sum + word) * FACTOR;
    }
    return sum;
}

static void find(struct lab_runtime_page *found) {
    uint64_t sum = sum_of(found->page);
    size_t low = 0, high = piece_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (pieces[middle].sum < sum) low = middle + 1;
        else high = middle;
    }
    found->first = pieces + low;
    for (found->count = 0; low + found->count < piece_count && found->first[found->count].sum == sum;) found->count++;
}

bool lab_runtime_code(struct lab_runtime_page *last, const void *code) {
    uint32_t at = (uintptr_t)code % PAGE_BYTES;
    if (!piece_count || !code) return false;
    if (last->page != (const uint8_t *)code - at) {
        last->page = (const uint8_t *)code - at;
        find(last);
    }
    for (size_t i = 0; i < last->count; i++)
        if (last->first[i].from <= at && at < last->first[i].to) return true;
    return false;
}
