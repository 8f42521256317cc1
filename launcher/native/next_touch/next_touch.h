/* Next-touch in user space: memory made inaccessible, and moved to the node of the thread that faults on it.
 *
 * From the lowest up: vmas.c knows what is mapped, queue.c which pages wait to be moved, marks.c what is marked; moving.c
 * moves pages; fault.c is the SIGSEGV handler and keeps the program's own; next_touch.c marks; calls.c touches, for the
 * kernel, memory that the program hands to it.
 * Nothing here runs, and no handler is set, before the first mark.
 */
#ifndef NUMAPLAN_NEXT_TOUCH_H
#define NUMAPLAN_NEXT_TOUCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* ---- vmas.c ---- */

struct nt_vma {
    uintptr_t start, end;
    int protection;
    bool markable; /* neither stack nor code, nor huge pages of a pool */
};

/* Mappings that overlap [start, end), ascending; at most `room`. The lock must be held. */
size_t nt_vmas(uintptr_t start, uintptr_t end, struct nt_vma *found, size_t room);

/* ---- queue.c: pages that wait to be moved together; the lock of the marks is held ---- */

enum { NT_BATCH = 512 };

struct nt_batch { /* nodes: where pages belong */
    uint32_t count;
    void *pages[NT_BATCH];
    int nodes[NT_BATCH];
};

struct nt_piece {
    uintptr_t start, end;
    int node;   /* of who touches it */
    bool waits; /* to be moved with others; else the caller moves it */
    bool due;   /* those that wait have waited long enough */
};

void nt_batch_add(struct nt_batch *batch, uintptr_t page, int node);
void nt_enqueue(struct nt_piece *piece);
void nt_dequeue(uintptr_t start, uintptr_t end);
void nt_reset_batching(void); /* after a mark, few wait again */
void nt_take_queue(struct nt_batch *to);
void nt_queue_forked(void);
bool nt_queue_filled(void); /* the lock need not be held */

/* ---- marks.c: all safe in signal handlers ---- */

extern _Atomic uint32_t nt_marks; /* ranges with pages not yet touched */

/* What was blocked before: the kernel's mask, of which libc's type has more. */
unsigned long nt_block_signals(void);
void nt_restore_signals(unsigned long blocked);
unsigned long nt_lock(void); /* no signal comes while it is held */
void nt_unlock(unsigned long blocked);
void nt_take_lock(void); /* for who has blocked all signals */
void nt_release_lock(void);
/* Those that the border of a part cuts: the kernel does so where a part is called cold, and that has no other effect worth
 * mention.
 */
void nt_split_huge_pages(uintptr_t start, uintptr_t end);
/* A mapping's part becomes inaccessible until touched; errno. */
int nt_mark(uintptr_t start, uintptr_t end, size_t granule, int protection);
/* Accessible again, unmoved; true: nothing is marked any more. */
bool nt_unmark(uintptr_t start, uintptr_t end);
/* The next marked byte of [start, end), or end. */
uintptr_t nt_next(uintptr_t start, uintptr_t end);

/* Make a marked piece accessible, to be moved to the node that the piece names; false: it is not marked (any more). All
 * signals must be blocked. */
bool nt_open(uintptr_t address, struct nt_piece *piece);

/* ---- moving.c ---- */

struct nt_counts {
    _Atomic uint64_t marked, touches, moved, stayed; /* marked: bytes; moved, stayed: pages that were elsewhere */
};
extern struct nt_counts nt_counts;

/* Move what the caller touches to its node, soon; false when it was not marked. All signals must be blocked. */
bool nt_resolve(uintptr_t address);
void nt_flush(void); /* none waits any more */
void nt_release(uintptr_t start, uintptr_t end); /* accessible again, unmoved */
void nt_movers_forked(void);

/* ---- next_touch.c ---- */

void nt_touch(const void *address, size_t bytes);
int nt_mark_memory(uintptr_t address, size_t bytes, size_t granule, int how);

/* ---- fault.c ---- */

bool nt_catch_faults(void); /* once */
void nt_retire(void); /* nothing is marked any more, or ever again; SIGSEGV is the program's */
bool nt_retired(void);

/* ---- calls.c ---- */

void nt_leaving(uintptr_t address, size_t bytes); /* about to be unmapped, moved or mapped anew */
void nt_freeing(void *block);                     /* about to be freed or resized */

static inline bool nt_any(void) { return __builtin_expect(atomic_load_explicit(&nt_marks, memory_order_relaxed), 0); }

#pragma GCC visibility pop
#endif
