/* Which memory is marked: ranges of one protection each, cut into granules that move together.
 *
 * One lock guards the table and the rights of what is in it: a granule is marked as long as it is inaccessible.
 */
#include "next_touch.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RANGES = 1024, HUGE_PAGE = 2 << 20 };
enum { DONE, MARKED };

struct range { /* ascending, without overlap */
    uintptr_t start, end;
    size_t granule; /* a power of 2; pieces begin at its multiples */
    int protection; /* what it has without us */
    uint32_t left;  /* granules not done */
    unsigned char *states;
    size_t room; /* for states */
};

_Atomic uint32_t nt_marks;
static struct range ranges[RANGES];
static uint32_t used;
enum { FREE, HELD, AWAITED };
static _Atomic int lock; /* who waits sleeps: the kernel takes its time to change a mapping */

void nt_take_lock(void) {
    int was = FREE;
    if (atomic_compare_exchange_strong(&lock, &was, HELD)) return;
    if (was != AWAITED) was = atomic_exchange(&lock, AWAITED);
    for (; was != FREE; was = atomic_exchange(&lock, AWAITED))
        syscall(SYS_futex, &lock, FUTEX_WAIT_PRIVATE, AWAITED, NULL);
}

void nt_release_lock(void) {
    if (atomic_exchange(&lock, FREE) == AWAITED) syscall(SYS_futex, &lock, FUTEX_WAKE_PRIVATE, 1);
}

unsigned long nt_block_signals(void) {
    static const unsigned long all = ~0ul;
    unsigned long blocked = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &blocked, sizeof all);
    return blocked;
}

void nt_restore_signals(unsigned long blocked) {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, sizeof blocked);
}

unsigned long nt_lock(void) {
    unsigned long blocked = nt_block_signals();
    nt_take_lock();
    return blocked;
}

void nt_unlock(unsigned long blocked) {
    nt_release_lock();
    nt_restore_signals(blocked);
}

static int protect(uintptr_t start, uintptr_t end, int protection) {
    return syscall(SYS_mprotect, start, end - start, protection) ? errno : 0;
}

void nt_split_huge_pages(uintptr_t start, uintptr_t end) { syscall(SYS_madvise, start, end - start, MADV_COLD); }

/* ---- granules ---- */

static size_t index_of(const struct range *range, uintptr_t address) {
    return (address - (range->start & ~(range->granule - 1))) / range->granule;
}

static size_t granules_of(const struct range *range) { return index_of(range, range->end - 1) + 1; }

static uintptr_t start_of(const struct range *range, size_t index) {
    uintptr_t at = (range->start & ~(range->granule - 1)) + index * range->granule;
    return at < range->start ? range->start : at < range->end ? at : range->end;
}

/* ---- the table; the lock is held ---- */

/* The first range that ends after the address. */
static uint32_t first_after(uintptr_t address) {
    uint32_t low = 0, high = used;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ranges[middle].end > address) high = middle;
        else low = middle + 1;
    }
    return low;
}

static struct range *range_at(uintptr_t address) {
    uint32_t at = first_after(address);
    return at < used && ranges[at].start <= address ? &ranges[at] : NULL;
}

static void drop_if_done(struct range *range) {
    if (range->left) return;
    syscall(SYS_munmap, range->states, range->room);
    memmove(range, range + 1, (size_t)(&ranges[--used] - range) * sizeof *range);
    atomic_store_explicit(&nt_marks, used, memory_order_relaxed);
}

/* Marked granules of [from, to) get their rights back. */
static void restore(struct range *range, size_t from, size_t to) {
    for (size_t first = from, last; first < to; first = last) {
        unsigned char state = range->states[first];
        for (last = first + 1; last < to && range->states[last] == state;) last++;
        if (state != MARKED) continue;
        if (protect(start_of(range, first), start_of(range, last), range->protection)) {
            /* More mappings than the kernel allows: as one mapping again it needs none of its own. */
            protect(range->start, range->end, range->protection);
            first = 0, last = granules_of(range);
            range->left = (uint32_t)last;
        }
        memset(range->states + first, DONE, last - first);
        range->left -= (uint32_t)(last - first);
    }
}

static bool make_states(struct range *range) {
    size_t count = granules_of(range);
    void *memory = (void *)syscall(SYS_mmap, NULL, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    range->states = memset(memory, MARKED, count);
    range->room = count;
    range->left = (uint32_t)count;
    return true;
}

static void insert_at(uint32_t at, struct range fresh) {
    memmove(&ranges[at + 1], &ranges[at], (used - at) * sizeof *ranges);
    ranges[at] = fresh;
    atomic_store_explicit(&nt_marks, ++used, memory_order_relaxed);
}

static uint32_t count_left(const struct range *range) {
    uint32_t left = 0;
    for (size_t i = 0, count = granules_of(range); i < count; i++) left += range->states[i] != DONE;
    return left;
}

/* Its granules in [start, end) are done: what is before and what is behind them become ranges of their own. */
static void cut(uint32_t at, uintptr_t start, uintptr_t end) {
    struct range *range = &ranges[at], behind = *range;
    size_t first = start > range->start ? index_of(range, start) : 0;
    uintptr_t resume = end < range->end ? start_of(range, index_of(range, end - 1) + 1) : range->end;
    size_t skip = resume < range->end ? index_of(range, resume) : 0;
    behind.start = resume;
    if (skip && used < RANGES && make_states(&behind)) {
        memcpy(behind.states, range->states + skip, granules_of(&behind));
        behind.left = count_left(&behind);
        insert_at(at + 1, behind);
        drop_if_done(&ranges[at + 1]);
    } else if (skip) {
        restore(range, skip, granules_of(range));
    }
    range->end = start_of(range, first);
    range->left = range->end > range->start ? count_left(range) : 0;
    drop_if_done(range);
}

static void make_room(uintptr_t start, uintptr_t end) {
    for (uint32_t at = first_after(start); at < used && ranges[at].start < end; at = first_after(start))
        cut(at, start, end);
}

/* Nothing is marked in [start, end) any more, none of it waits, and no range reaches into it: it may be unmapped, and mapped
 * by others. */
static void release(uintptr_t start, uintptr_t end) {
    nt_dequeue(start, end);
    for (uint32_t at = first_after(start); at < used && ranges[at].start < end;) {
        struct range *range = &ranges[at];
        uintptr_t low = start > range->start ? start : range->start, high = end < range->end ? end : range->end;
        restore(range, index_of(range, low), index_of(range, high - 1) + 1);
        uint32_t before = used;
        drop_if_done(range);
        at += used == before;
    }
    make_room(start, end);
}

bool nt_unmark(uintptr_t start, uintptr_t end) {
    if (start >= end) return false;
    unsigned long blocked = nt_lock();
    release(start, end);
    bool none_left = !used;
    nt_unlock(blocked);
    return none_left;
}

static int insert(struct range fresh) {
    if (used == RANGES || granules_of(&fresh) > UINT32_MAX || !make_states(&fresh)) return ENOMEM;
    int error = protect(fresh.start, fresh.end, PROT_NONE);
    if (error) {
        /* The kernel may have done a part of it. */
        protect(fresh.start, fresh.end, fresh.protection);
        syscall(SYS_munmap, fresh.states, fresh.room);
        return error;
    }
    insert_at(first_after(fresh.start), fresh);
    return 0;
}

int nt_mark(uintptr_t start, uintptr_t end, size_t granule, int protection) {
    unsigned long blocked = nt_lock();
    release(start, end);
    nt_reset_batching();
    int error = insert((struct range){.start = start, .end = end, .granule = granule, .protection = protection});
    nt_unlock(blocked);
    return error;
}

uintptr_t nt_next(uintptr_t start, uintptr_t end) {
    uintptr_t found = end;
    unsigned long blocked = nt_lock();
    for (uint32_t at = first_after(start); at < used && ranges[at].start < end && found == end; at++) {
        uintptr_t low = start > ranges[at].start ? start : ranges[at].start;
        size_t index = index_of(&ranges[at], low), count = granules_of(&ranges[at]);
        while (index < count && ranges[at].states[index] == DONE) index++;
        uintptr_t place = index < count ? start_of(&ranges[at], index) : end;
        if (place < end) found = place > low ? place : low;
    }
    nt_unlock(blocked);
    return found;
}

/* Whether something of the huge page there was touched since the mark. */
static bool begun(const struct range *range, uintptr_t address) {
    uintptr_t start = address & ~(uintptr_t)(HUGE_PAGE - 1), end = start + HUGE_PAGE;
    if (start < range->start) start = range->start;
    if (end > range->end) end = range->end;
    return memchr(range->states + index_of(range, start), DONE, index_of(range, end - 1) - index_of(range, start) + 1);
}

/* The kernel does not split a huge page that somebody looks at, and moving any part would then take all of it along, parts
 * that are where they belong, too. So it is split before anybody else can know of a part that was touched.
 */
static void split_if_first(const struct range *range, const struct nt_piece *piece) {
    bool cut_at_start = piece->start % HUGE_PAGE && !begun(range, piece->start);
    bool cut_at_end = piece->end % HUGE_PAGE && !begun(range, piece->end - 1);
    if (cut_at_start || cut_at_end) nt_split_huge_pages(piece->start, piece->end);
}

bool nt_open(uintptr_t address, struct nt_piece *piece) {
    nt_take_lock();
    struct range *range = range_at(address);
    size_t index = range ? index_of(range, address) : 0;
    bool ours = range && range->states[index] == MARKED;
    if (ours) {
        piece->start = start_of(range, index);
        piece->end = start_of(range, index + 1);
        split_if_first(range, piece);
        restore(range, index, index + 1);
        piece->due = !range->left;
        drop_if_done(range);
        nt_enqueue(piece);
    }
    nt_release_lock();
    return ours;
}
