/* The event log of one process image: a file mapped shared, so that a killed process loses nothing.
 *
 * No descriptor stays open (programs close and reuse descriptors they did not open), and the file is grown by
 * writing zeros ahead of the records (a full disk then stops the log, where a sparse mapping would be a SIGBUS). It is
 * mapped in segments as it grows: a program that limits its own address space counts what is there already.
 */
#include "preload.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    SLOT = 64,
    HEADER_SLOTS = 2,
    CHUNK = 32 * 1024,
    ZEROS = 4096,
    PATIENCE = 100000,
    KEPT = 1 << 20,
    SEGMENT = 1 << 20
};
#define LONGEST ((uint64_t)1 << 30)

_Static_assert(sizeof(struct np_log_header) == HEADER_SLOTS * SLOT, "the reader relies on it");

struct np_wanted np_wanted;

static struct np_log_header *head; /* in the first segment */
static char *segments[LONGEST / SEGMENT];
static _Atomic uint64_t grown; /* bytes of the file that can be touched */
static _Atomic bool broken;
static uint64_t limit; /* bytes that it may have */
static char path[NP_PATH];

static bool append_zeros(uint64_t offset, int flags) {
    static const char zeros[ZEROS];
    struct iovec pieces[CHUNK / ZEROS];
    for (int i = 0; i < CHUNK / ZEROS; i++) pieces[i] = (struct iovec){(void *)zeros, ZEROS};
    /* Beyond the program's file size limit a write would be a signal to it. */
    struct rlimit size;
    if (getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur < offset + CHUNK) return false;
    int file = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return false;
    bool done = pwritev(file, pieces, CHUNK / ZEROS, (off_t)offset) == CHUNK;
    close(file);
    return done;
}

/* What lies beyond the file is closed: who reads all that a process may read (a leak checker) would meet a SIGBUS for
 * every word of it.
 */
static bool open_chunk(uint64_t offset) {
    return syscall(SYS_mprotect, segments[offset / SEGMENT] + offset % SEGMENT, CHUNK, PROT_READ | PROT_WRITE) == 0;
}

/* A program with little address space of its own keeps it. */
static uint64_t most_bytes(void) {
    uint64_t most = np_wanted.log_bytes < LONGEST ? np_wanted.log_bytes : LONGEST;
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY && space.rlim_cur / 32 < most)
        most = space.rlim_cur / 32;
    return most / CHUNK * CHUNK;
}

/* The segment that begins there, nothing of it open yet. */
static bool map_segment(uint64_t offset) {
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return false;
    /* By system call: mmap is our own wrapper, which would log it. */
    const int shared = MAP_SHARED | MAP_NORESERVE;
    long memory = syscall(SYS_mmap, NULL, (long)SEGMENT, PROT_NONE, shared, file, (long)offset);
    close(file);
    if (memory != -1) segments[offset / SEGMENT] = (char *)memory;
    return memory != -1;
}

static bool map_log(void) {
    limit = most_bytes();
    if (limit == 0 || !map_segment(0) || !open_chunk(0)) return false;
    head = (struct np_log_header *)segments[0];
    return true;
}

/* By who alone may grow it. */
static bool add_chunk(uint64_t chunk) {
    if (!append_zeros(chunk, O_WRONLY) || (chunk % SEGMENT == 0 && !map_segment(chunk)) || !open_chunk(chunk))
        return false;
    atomic_store_explicit(&grown, chunk + CHUNK, memory_order_release);
    return true;
}

bool np_log_open(void) {
    if (head) return true;
    if (np_sandboxed() || atomic_load(&broken) || !np_directory || !np_wanted.log_bytes) return false;
    uint32_t image = np_next_image();
    int length = snprintf(path, sizeof path, "%s/image-%08u.log", np_directory, image);
    bool fits = image && length > 0 && (size_t)length < sizeof path;
    if (!fits || !append_zeros(0, O_WRONLY | O_CREAT | O_EXCL) || !map_log()) {
        atomic_store(&broken, true);
        return false;
    }
    atomic_store(&grown, CHUNK);
    head->version = 1;
    head->slot_bytes = SLOT;
    head->entry = np_process_entry();
    head->image = image;
    head->pid = (uint32_t)getpid();
    head->parent_image = np_inherited_image();
    head->fork_ns = np_fork_time();
    head->start_ns = np_now();
    atomic_store(&head->cursor, HEADER_SLOTS);
    memcpy(head->magic, "NUMAPLID", sizeof head->magic);
    return true;
}

void np_log_forget(void) {
    for (uint64_t i = 0; i < LONGEST / SEGMENT && segments[i]; i++) {
        if (!np_sandboxed()) syscall(SYS_munmap, segments[i], (long)SEGMENT);
        segments[i] = NULL;
    }
    head = NULL;
    atomic_store(&broken, false);
}

const char *np_log_path(void) { return head ? path : NULL; }

uint32_t np_log_image(void) { return head ? head->image : 0; }

static bool wait_for(uint64_t bytes) {
    for (int tries = 0; atomic_load_explicit(&grown, memory_order_acquire) < bytes; tries++) {
        if (atomic_load(&broken) || tries == PATIENCE || np_sandboxed()) return false;
        sched_yield();
    }
    return true;
}

/* Who claims the first byte of a chunk grows the file by it: exactly one thread, without a lock. */
static NP_COLD void grow(uint64_t begin, uint64_t end) {
    if (!np_enter()) return;
    for (uint64_t chunk = (begin + CHUNK - 1) / CHUNK * CHUNK; chunk < end; chunk += CHUNK) {
        if (chunk == 0) continue;
        if (atomic_load(&grown) > chunk) continue; /* room that was kept */
        if (wait_for(chunk) && np_may_call() && add_chunk(chunk)) continue;
        atomic_store(&broken, true);
        break;
    }
    np_leave();
}

void np_log_keep_room(void) {
    if (!head) return;
    uint64_t from = atomic_load(&grown), to = atomic_load(&head->cursor) * SLOT + KEPT;
    if (to > limit) to = limit;
    for (uint64_t chunk = from; chunk < to && add_chunk(chunk);) chunk += CHUNK;
}

/* The check word is stored last: a record that its thread did not finish does not verify. */
static void commit(struct np_record *to, const struct np_record *from) {
    const size_t skip = sizeof from->check;
    memcpy((char *)to + skip, (const char *)from + skip, sizeof *from - skip);
    atomic_store_explicit(&to->check, np_check_of(from), memory_order_release);
}

/* Where a record would lie in two segments there is one of nothing. */
static struct np_record *claim(uint64_t slots) {
    for (;;) {
        uint64_t begin = atomic_fetch_add(&head->cursor, slots) * SLOT, end = begin + slots * SLOT;
        if (end > limit) break;
        if (begin / CHUNK != (end - 1) / CHUNK || begin % CHUNK == 0) grow(begin, end);
        if (!wait_for(end)) break;
        struct np_record *record = (struct np_record *)(segments[begin / SEGMENT] + begin % SEGMENT);
        if (begin / SEGMENT == (end - 1) / SEGMENT) return record;
        commit(record, &(struct np_record){.kind = NP_NOTHING, .text_slots = (uint16_t)(slots - 1)});
    }
    atomic_fetch_add(&head->dropped, 1);
    return NULL;
}

void np_log(uint16_t kind, uint32_t thread, uint32_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e) {
    int saved = errno;
    struct np_record record = {.kind = kind, .thread = thread, .a = a, .b = b, .c = c, .d = d, .e = e};
    struct np_record *to = np_log_open() ? claim(1) : NULL;
    if (to) {
        record.time_ns = np_now();
        commit(to, &record);
    }
    errno = saved;
}

void np_log_text(const struct np_record *fields, const void *text, size_t bytes) {
    int saved = errno;
    struct np_record record = *fields;
    record.text_slots = (uint16_t)((bytes + SLOT - 1) / SLOT);
    record.text_bytes = bytes;
    struct np_record *to = np_log_open() ? claim(1 + (uint64_t)record.text_slots) : NULL;
    if (to) {
        memcpy(to + 1, text, bytes);
        record.time_ns = np_now();
        commit(to, &record);
    }
    errno = saved;
}
