/*
 * Which code is the loader's or a thread runtime's: what it touches, it touches for itself, and it is not counted by
 * exact.h.
 *
 * Told by what is in a page of code: the host lists the runtimes' pages by a sum of their words, with the piece of each
 * that is a runtime's. The guest runs the host's files, so their pages have the same words in all its processes.
 */
#ifndef NUMAPLAN_LAB_RUNTIME_H
#define NUMAPLAN_LAB_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As lab/recording/runtime.py writes it, ascending by sum. */
struct lab_runtime_piece {
    uint64_t sum;
    uint32_t from, to; /* bytes of the page */
};

/* The pieces of the page that was asked for last. */
struct lab_runtime_page {
    const uint8_t *page; /* NULL: none yet */
    const struct lab_runtime_piece *first;
    size_t count;
};

bool lab_runtime_open(const char *path); /* false: the list cannot be read */
/* Of code at an address of the host; NULL: not known, so the program's. */
bool lab_runtime_code(struct lab_runtime_page *last, const void *code);

#endif
