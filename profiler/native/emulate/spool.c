/* The files a process leaves: `emulate-PID-START.threads` (a header and its threads), `….samples`, `….windows`,
 * `….clock`, `….clock-window`, `….calls`, `….calls-window`, `….transfers`, `….transfers-window`, `….transfers-table`,
 * `….running`, `….running-window`, `….uses`. And `emulate-PID.latest`, the START of those that it wrote last.
 *
 * Samples are collected in a window, which is appended to `samples` when full. The window is itself a mapping of a
 * file, of room that was reserved before, and so are the threads: what was recorded is in the files even if the
 * process is killed, and a full disk is an error code here, not a SIGBUS. (Mapping `samples` itself is five times
 * slower: each new page is a fault into the file system.) No descriptor stays open: the guest program shares
 * ours, may close them all, and may count on their numbers. Only one that may have another root soon, or other rights,
 * finds the folder by a descriptor from then on.
 *
 * A sample is two words: addr | reach<<48 | remote<<52 | level<<58 | store<<62, and ip | offset<<48; its time is that
 * of the header before it plus the offset. A header is 1<<63 | thread index, and its time in ns; what follows it is in
 * no call that is known, until 3<<62 and the number of a call says so. A call is the number of the one that was under way
 * when it was made, and its address; numbers begin with 1, in the order of writing. A time is two words: the host's clock,
 * and the recording's. Transfers are as transfers/table.c has them: entries, each of the stretch whose header (1<<63, and its start)
 * came last; those of the table are of the last one. Threads that could run are numbers from 1 on, 0 for none, after a
 * header (1<<63) with the time of the look (running.c). Uses are as page_uses.h has them. Unused room is zero.
 */
#include "emulate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERSION 9
#define HEADER_BYTES 4096
/* Small, for programs of thousands of processes. */
#define RECORDS_AT_ONCE 8
#define LOW48 ((UINT64_C(1) << 48) - 1)

_Static_assert(RECORDS_AT_ONCE * sizeof(struct em_thread) % HEADER_BYTES == 0, "mapped by the page");

static struct em_process_header nowhere; /* while no file could be made */
static struct em_process_header *header = &nowhere;
static struct em_thread *records; /* the last group of records */
static uint32_t records_left;
static struct em_window window; /* fair schedule */
static struct em_window clock_window;
static struct em_window transfers_window;
static struct em_window calls_window;
static struct em_window running_window;
static struct stream {
    const char *full, *room; /* kinds of file: windows that were full, and windows in use */
    uint64_t bytes;          /* of a window */
    uint64_t full_end, room_end;
} samples = {"samples", "windows", 1 << 16, 0, 0}, times = {"clock", "clock-window", 1 << 12, 0, 0},
  transfers = {"transfers", "transfers-window", 1 << 16, 0, 0}, calls = {"calls", "calls-window", 1 << 12, 0, 0},
  running = {"running", "running-window", 1 << 12, 0, 0};
static uint64_t uses_end;
static char stem[64];

#define HELD_FROM 1000 /* higher than what programs count on */
static struct {
    int file; /* 0: none */
    struct stat known;
} held_folder;

static void failed(int problem) {
    if (!header->error) header->error = (uint32_t)problem;
}

/* The descriptor, if the guest program has not made another file of it. */
static bool is_held(void) {
    struct stat now;
    return held_folder.file && fstat(held_folder.file, &now) == 0 && now.st_dev == held_folder.known.st_dev &&
           now.st_ino == held_folder.known.st_ino;
}

/* The root may become another one, where the folder has no path. What cannot be held fails when something is written. */
void em_spool_hold_folder(void) {
    int file = is_held() ? -1 : open(em_options.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return;
    int high = fcntl(file, F_DUPFD_CLOEXEC, HELD_FROM);
    if (high >= 0) close(file);
    else high = file; /* it may have no more than so many */
    if (fstat(high, &held_folder.known) == 0) held_folder.file = high;
    else close(high);
}

static int open_in_folder(const char *name, int flags) {
    char path[4300];
    snprintf(path, sizeof path, "%s/%s", em_options.dir, name);
    flags |= O_CLOEXEC | O_NOFOLLOW;
    return is_held() ? openat(held_folder.file, name, flags, 0600) : open(path, flags, 0600);
}

/* One of ours: what the user has put there may be a link to a file of root's. */
static void give_file(int folder, const char *name, uint32_t user) {
    struct stat found;
    int file = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return;
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_nlink == 1)
        (void)!fchownat(file, "", user, (gid_t)-1, AT_EMPTY_PATH);
    close(file);
}

/* The program becomes another user, who could not write here: the folder and what is in it are this user's from now on.
 * Root, who still reads them, follows no link there. Where there is such a user already, another one gets nothing. */
void em_spool_give(uint32_t user) {
    struct stat folder;
    if (geteuid() != 0 || user == 0 || user == UINT32_MAX) return;
    em_spool_hold_folder();
    int file = open_in_folder(".", O_RDONLY | O_DIRECTORY);
    DIR *listed = file < 0 ? NULL : fdopendir(file);
    if (!listed) {
        if (file >= 0) close(file);
        return;
    }
    if (fstat(file, &folder) == 0 && (folder.st_uid == 0 || folder.st_uid == user)) {
        for (struct dirent *one; (one = readdir(listed));) give_file(file, one->d_name, user);
        (void)!fchown(file, user, (gid_t)-1);
    }
    closedir(listed);
}

static int open_file(const char *kind) {
    char name[128];
    snprintf(name, sizeof name, "%s.%s", stem, kind);
    return open_in_folder(name, O_RDWR | O_CREAT);
}

/* What is done with a file: some of it written or, without data, reserved and mapped as zeroed memory. */
struct task {
    const char *kind;
    uint64_t offset, bytes;
    const char *data;
    void *room;
    int problem;
};

static int perform(struct task *t) {
    int file = open_file(t->kind);
    int problem = file < 0 ? errno : 0;
    if (!problem && t->data == NULL) {
        while ((problem = posix_fallocate(file, (off_t)t->offset, (off_t)t->bytes)) == EINTR) {}
        int how = MAP_SHARED | MAP_POPULATE;
        if (!problem) t->room = mmap(NULL, t->bytes, PROT_READ | PROT_WRITE, how, file, (off_t)t->offset);
        if (!problem && t->room == MAP_FAILED) problem = errno;
    }
    for (uint64_t done = 0; !problem && t->data && done < t->bytes;) {
        ssize_t wrote = pwrite(file, t->data + done, t->bytes - done, (off_t)(t->offset + done));
        if (wrote < 0 && errno != EINTR) problem = errno;
        if (wrote > 0) done += (uint64_t)wrote;
    }
    if (file >= 0) close(file);
    return problem;
}

/* In a process that shares our memory, and has descriptors of its own. */
static int perform_apart(void *task) {
    for (int file = 0; file < 3; file++) close(file); /* ours stay open */
    struct task *t = task;
    t->problem = perform(t);
    _exit(0);
}

/* Whether it could be done; the guest program may have used up our descriptors, which are its own. */
static bool done(struct task *t) {
    t->problem = perform(t);
    if (t->problem == EMFILE) {
        char stack[1 << 14] __attribute__((aligned(64)));
        int child = clone(perform_apart, stack + sizeof stack, CLONE_VM | CLONE_VFORK, t);
        if (child > 0)
            while (waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR) {}
    }
    if (t->problem) failed(t->problem);
    return !t->problem;
}

/* Zeroed memory that is a part of a file; NULL where there is no room. */
static void *reserve(const char *kind, uint64_t offset, uint64_t bytes) {
    struct task task = {.kind = kind, .offset = offset, .bytes = bytes};
    return done(&task) ? task.room : NULL;
}

static int open_latest(int64_t pid, int flags) {
    char name[64];
    snprintf(name, sizeof name, "emulate-%lld.latest", (long long)pid);
    return open_in_folder(name, flags);
}

/* Which files are those of the program that this process runs. */
static void note_latest(void) {
    int file = open_latest(getpid(), O_WRONLY | O_CREAT);
    if (file >= 0 && pwrite(file, &header->start_ns, sizeof header->start_ns, 0) < 0) failed(errno);
    if (file >= 0) close(file);
}

/* Start this process's files, at a time by the host's clock and, under the fair schedule, by the recording's; what a
 * parent process had mapped stays its own. */
void em_spool_open(int64_t now, int64_t first) {
    struct em_process_header *origin = header;
    int64_t root_pid = origin->root_pid, root_start = origin->root_start_ns;
    snprintf(stem, sizeof stem, "emulate-%d-%lld", (int)getpid(), (long long)now);
    memset(&nowhere, 0, sizeof nowhere);
    header = &nowhere;
    window = clock_window = transfers_window = calls_window = running_window = (struct em_window){0};
    records_left = 0;
    samples.full_end = samples.room_end = times.full_end = times.room_end = 0;
    transfers.full_end = transfers.room_end = calls.full_end = calls.room_end = uses_end = 0;
    running.full_end = running.room_end = 0;
    struct em_process_header *mapped = reserve("threads", 0, HEADER_BYTES);
    if (mapped == NULL) return;
    header = mapped;
    header->version = VERSION;
    header->pid = (uint32_t)getpid();
    header->record_bytes = sizeof(struct em_thread);
    header->start_ns = now;
    header->first_ns = header->last_ns = em_options.fair ? first : now;
    header->origin_pid = origin->pid;
    header->origin_start_ns = origin->start_ns;
    header->root_pid = root_pid ? root_pid : header->pid;
    header->root_start_ns = root_pid ? root_start : now;
    memcpy(header->magic, "NPEMULAT", sizeof header->magic);
    note_latest();
}

/* The head of the files of the program that a process runs, or ran last; false: it left none, or we may open no more. */
bool em_spool_latest(int64_t pid, struct em_process_header *found) {
    char name[128];
    int64_t start = -1;
    int file = open_latest(pid, O_RDONLY);
    bool known = file >= 0 && pread(file, &start, sizeof start, 0) == sizeof start;
    if (file >= 0) close(file);
    snprintf(name, sizeof name, "emulate-%lld-%lld.threads", (long long)pid, (long long)start);
    file = known ? open_in_folder(name, O_RDONLY) : -1;
    bool whole = file >= 0 && pread(file, found, sizeof *found, 0) == sizeof *found && found->version == VERSION;
    if (file >= 0) close(file);
    return whole;
}

void em_spool_same_clock(const struct em_process_header *before) {
    nowhere.root_pid = before->root_pid;
    nowhere.root_start_ns = before->root_start_ns;
}

bool em_spool_is_same_clock(const struct em_process_header *other) {
    return other->root_pid == header->root_pid && other->root_start_ns == header->root_start_ns;
}

/* A zeroed thread in the file, or in plain memory when there is no room for it. NULL: no memory either. */
struct em_thread *em_spool_new_thread(void) {
    size_t bytes = RECORDS_AT_ONCE * sizeof(struct em_thread);
    if (records_left == 0) {
        records = reserve("threads", HEADER_BYTES + header->threads * sizeof(struct em_thread), bytes);
        if (records == NULL) records = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (records == MAP_FAILED) return NULL;
        records_left = RECORDS_AT_ONCE;
    }
    struct em_thread *t = &records[RECORDS_AT_ONCE - records_left--];
    t->index = (uint32_t)header->threads++;
    return t;
}

/* Append a full window to the file of full ones and empty it. */
static bool window_flush(struct em_window *w, struct stream *s) {
    uint64_t offset = __atomic_fetch_add(&s->full_end, s->bytes, __ATOMIC_RELAXED);
    char *start = (char *)w->end - s->bytes;
    struct task task = {.kind = s->full, .offset = offset, .bytes = s->bytes, .data = start};
    if (!done(&task)) return false;
    memset(start, 0, s->bytes);
    return true;
}

/* Make room in a window: a new one, or the old one emptied. */
static bool window_next(struct em_window *w, struct stream *s) {
    if (header->error) return false;
    if (w->end) {
        if (!window_flush(w, s)) return false;
        w->next = w->end - s->bytes / sizeof *w->next;
        return true;
    }
    w->next = reserve(s->room, __atomic_fetch_add(&s->room_end, s->bytes, __ATOMIC_RELAXED), s->bytes);
    w->end = w->next ? w->next + s->bytes / sizeof *w->next : NULL;
    return w->next != NULL;
}

/* How far the recording's clock has come. */
void em_spool_time(int64_t now) {
    if (header->last_ns < now) header->last_ns = now;
}

void em_spool_footprint(uint64_t bytes) { header->footprint = bytes; }

/* What was forked while nothing is recorded has its parent's header. */
void em_spool_ends(enum em_end how) {
    if (header->pid == (uint32_t)getpid()) header->ends = how;
}

static void put_pair(struct em_window *w, struct stream *s, uint64_t first, uint64_t second) {
    if (w->end - w->next < 2 && !window_next(w, s)) return;
    *w->next++ = first;
    *w->next++ = second;
}

/* The host's clock and ours at one moment; the caller holds the clock's lock. */
void em_spool_clock(int64_t host, int64_t ours) { put_pair(&clock_window, &times, (uint64_t)host, (uint64_t)ours); }

/* A call by another one; under the free schedule the caller has the lock. */
void em_spool_call(uint32_t outer, uint64_t ip) { put_pair(&calls_window, &calls, outer, ip); }

/* Two words on transfers (transfers/table.c). */
void em_spool_transfers(uint64_t first, uint64_t second) { put_pair(&transfers_window, &transfers, first, second); }

/* Two words on threads that could run (running.c). */
void em_spool_running(uint64_t first, uint64_t second) { put_pair(&running_window, &running, first, second); }

/* Zeroed memory for the table of transfers; NULL: no room. */
void *em_spool_table(size_t bytes) { return reserve("transfers-table", 0, bytes); }

/* Zeroed room for uses of pages, where they are counted; NULL: none. */
struct page_use *em_spool_uses(void) {
    uint64_t bytes = PAGE_USES_AT_ONCE * sizeof(struct page_use);
    struct page_use *room = header->error ? NULL : reserve("uses", uses_end, bytes);
    uses_end += room ? bytes : 0;
    return room;
}

void em_spool_uses_end(struct page_use *room) { munmap(room, PAGE_USES_AT_ONCE * sizeof *room); }

static void start_block(struct em_thread *t, struct em_window *w) {
    t->turn_base += t->position;
    t->position = 0;
    *w->next++ = UINT64_C(1) << 63 | t->index;
    *w->next++ = (uint64_t)t->turn_base;
    t->block_open = true;
    t->call_written = 0;
}

/* Write one sample of a thread that has the turn, at its present time. */
void em_spool_sample(struct em_thread *t, uint64_t addr, uint64_t ip, uint32_t call, bool store, enum cache_level level,
                     struct reach reach) {
    struct em_window *w = em_options.fair ? &window : &t->own;
    if (unlikely(w->end - w->next < 6)) {
        if (!window_next(w, &samples)) {
            t->record.lost++;
            return;
        }
        t->block_open = false;
    }
    if (unlikely(!t->block_open || t->position >> 16)) start_block(t, w);
    if (call != t->call_written) {
        w->next[0] = UINT64_C(3) << 62;
        w->next[1] = t->call_written = call;
        w->next += 2;
    }
    w->next[0] = (addr & LOW48) | (uint64_t)reach.sizes << 48 | (uint64_t)reach.remote << 52 | (uint64_t)level << 58 |
                 (uint64_t)store << 62;
    w->next[1] = (ip & LOW48) | (uint64_t)t->position << 48;
    w->next += 2;
}
