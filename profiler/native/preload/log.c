/* The event log of one process image: a file mapped shared, so that a killed process loses nothing.
 *
 * No descriptor stays open (programs close and reuse descriptors they did not open), and the file is grown by
 * writing zeros ahead of the records (a full disk then stops the log, where a sparse mapping would be a SIGBUS).
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

enum { SLOT = 64, HEADER_SLOTS = 2, CHUNK = 32 * 1024, ZEROS = 4096, PATIENCE = 100000 };

struct header {
    char magic[8];
    uint32_t version, slot_bytes;
    uint32_t entry, image, pid, parent_image;
    uint64_t start_ns, fork_ns;
    _Atomic uint64_t cursor;  /* slots claimed, those of the header included */
    _Atomic uint64_t dropped; /* records for which there was no room */
    uint64_t spare[8];
};
_Static_assert(sizeof(struct header) == HEADER_SLOTS * SLOT, "the reader relies on it");

struct np_wanted np_wanted;

static struct header *head;
static _Atomic uint64_t grown; /* bytes of the file that can be touched */
static _Atomic bool broken;
static uint64_t limit; /* bytes mapped */
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
static bool open_chunk(void *base, uint64_t offset) {
    return syscall(SYS_mprotect, (char *)base + offset, CHUNK, PROT_READ | PROT_WRITE) == 0;
}

/* A program with little address space of its own keeps it. */
static uint64_t bytes_to_map(void) {
    uint64_t most = np_wanted.log_bytes;
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY && space.rlim_cur / 32 < most)
        most = space.rlim_cur / 32;
    return most / CHUNK * CHUNK;
}

static bool map_log(void) {
    limit = bytes_to_map();
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0 || limit == 0) return false;
    /* By system call: mmap is our own wrapper, which would log it. */
    const int shared = MAP_SHARED | MAP_NORESERVE;
    long memory = syscall(SYS_mmap, NULL, limit, PROT_NONE, shared, file, 0);
    close(file);
    if (memory == -1 || !open_chunk((void *)memory, 0)) return false;
    head = (struct header *)memory;
    return true;
}

bool np_log_open(void) {
    if (head) return true;
    if (atomic_load(&broken) || !np_directory || !np_wanted.log_bytes) return false;
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
    if (head) syscall(SYS_munmap, head, limit);
    head = NULL;
    atomic_store(&broken, false);
}

uint32_t np_log_image(void) { return head ? head->image : 0; }

static bool wait_for(uint64_t bytes) {
    for (int tries = 0; atomic_load_explicit(&grown, memory_order_acquire) < bytes; tries++) {
        if (atomic_load(&broken) || tries == PATIENCE) return false;
        sched_yield();
    }
    return true;
}

/* Who claims the first byte of a chunk grows the file by it: exactly one thread, without a lock. */
static NP_COLD void grow(uint64_t begin, uint64_t end) {
    for (uint64_t chunk = (begin + CHUNK - 1) / CHUNK * CHUNK; chunk < end; chunk += CHUNK) {
        if (chunk == 0) continue;
        if (!wait_for(chunk) || !append_zeros(chunk, O_WRONLY) || !open_chunk(head, chunk)) {
            atomic_store(&broken, true);
            return;
        }
        atomic_store_explicit(&grown, chunk + CHUNK, memory_order_release);
    }
}

static struct np_record *claim(uint64_t slots) {
    uint64_t begin = atomic_fetch_add(&head->cursor, slots) * SLOT, end = begin + slots * SLOT;
    if (end <= limit) {
        if (begin / CHUNK != (end - 1) / CHUNK || begin % CHUNK == 0) grow(begin, end);
        if (wait_for(end)) return (struct np_record *)((char *)head + begin);
    }
    atomic_fetch_add(&head->dropped, 1);
    return NULL;
}

/* The check word is stored last: a record that its thread did not finish does not verify. */
static void commit(struct np_record *to, const struct np_record *from) {
    const size_t skip = sizeof from->check;
    memcpy((char *)to + skip, (const char *)from + skip, sizeof *from - skip);
    uint32_t check = (uint32_t)np_hash(NP_HASH_START, (const char *)from + skip, sizeof *from - skip);
    atomic_store_explicit(&to->check, check ? check : 1, memory_order_release);
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
