/* The emulation plugin: what its parts share.
 *
 * options.c  what the recorder asks for
 * memory.c   the program's memory
 * slots.c    who has which private caches
 * asleep.c   whether a thread sleeps
 * guest.c    what depends on the guest's architecture
 * pages.c    which node each page lives on, for the cache model (machine/native/caches)
 * spool.c    the files that Python reads
 * clock.c    the recording's clock, and where it meets the host's
 * lines.c    who takes which line from whom
 * uses.c     which thread uses which page how often
 * before.c   which pages were touched before the part that is recorded
 * buffers.c  memory that system calls fill, or read
 * frames.c   who called whom (frames.h)
 * runtime.c  which code is a thread runtime's
 * running.c  which threads could run, now and then
 * turns.c    whose turn it is: one thread at a time owns all shared state
 * futex.c    who sleeps, and who wakes whom
 * threads.c  guest threads: attach, exit, fork
 * accesses.c what an access runs through
 * cpus.c     which cpus the program sees
 * calls.c    the guest's system calls
 * part.c     the part of the run that is recorded
 * plugin.c   QEMU's side: translation
 *
 * From the lowest up: each uses those above it in this list.
 *
 * Under the fair schedule everything below is touched only by the thread whose turn it is (or, for `struct
 * em_thread`, by the thread itself), so nothing is atomic. Under the free one the model has a lock.
 */
#ifndef NUMAPLAN_EMULATE_H
#define NUMAPLAN_EMULATE_H

#include "caches.h"
#include "page_uses.h"
#include "reach.h"
#include "transfers.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define MAX_SHOWN_CPU 4096
#define CPUS_CALL 0x6e756d63 /* no system call of any architecture; native/recorder/cpus.c makes it */
#define MAX_THREADS CACHES_MAX_CORES /* living at a time; Linux allows a process fewer */

/* One thread as backends/emulation/spool.py reads it; at the start of `struct em_thread`, which lies in the file. */
struct em_thread_record {
    uint32_t tid;
    uint32_t birth;   /* how many threads the process had made before: it sits on the birth-th cpu, wrapping */
    int64_t start_ns; /* by the recording's clock (clock.c); -1 before its first turn */
    int64_t end_ns;   /* -1 while it lives */
    uint64_t made[2]; /* loads, stores */
    struct cache_counts caches;
    uint64_t shared_hits; /* accesses that a shared L3 answered, and that would ask another's if each had its own */
    uint64_t lost; /* samples that found no room */
    int64_t sleeps; /* system calls, but for locks, in which it waited until it was woken */
    int64_t real_time; /* 1: it runs before all threads that are not, until it waits */
    uint64_t past[2][REACH_SIZES]; /* accesses past exactly the i+1 smallest sizes, to local and to remote pages */
};

struct em_process_header {
    char magic[8];
    uint32_t version;
    uint32_t pid;
    uint32_t record_bytes; /* sizeof(struct em_thread) */
    uint32_t error; /* errno of the first failed write, 0 if none */
    int64_t start_ns; /* CLOCK_MONOTONIC */
    uint64_t threads; /* records in use */
    int64_t first_ns, last_ns; /* by the recording's clock */
    int64_t origin_pid, origin_start_ns; /* the process that it was forked from, 0 if none: its clock goes on here */
    uint64_t footprint; /* bytes of the pages it had touched and not unmapped, at their most */
    int64_t root_pid, root_start_ns; /* the image in which its clock began */
    uint64_t ends; /* 1: it ends itself, no signal does; 2: it becomes another program, in a process of its own files */
};

/* An access that could not wait for its thread's turn (turns.c says when). */
struct em_late_access {
    uint64_t addr, ip;
    uint32_t rw, counts;
};

/* Where samples and times go: 16-byte records in a mapped window of the process's file. */
struct em_window {
    uint64_t *next, *end;
};

struct em_shared_recent {
    uint64_t number; /* + 1; 0 when empty */
    struct shared_page *page; /* of transfers.h */
};

enum em_syscall_kind {
    CALL_OTHER,
    CALL_QUICK, /* never waits for another thread */
    CALL_EXIT,
    CALL_EXIT_ALL,
    CALL_AFFINITY,
    CALL_SET_AFFINITY,
    CALL_CLONE,
    CALL_CLONE3,
    CALL_FORK,
    CALL_EXEC,
    CALL_OPEN,
    CALL_OPENAT,
    CALL_UNMAP,
    CALL_ADVISE, /* madvise */
    CALL_CLOCK,
    CALL_FUTEX,
    CALL_LOCKS, /* the same in other forms, of which turns know nothing */
    CALL_YIELD,
    CALL_SCHEDULER, /* of the thread at the first argument; 0: its own */
    CALL_WAIT, /* for a process; the answer is which */
    CALL_ROOT, /* paths may lead elsewhere from then on */
    CALL_READ, /* into memory at the second argument, of as many bytes as the third says */
    CALL_READ_PIECES, /* into that of a list at the second argument, of as many pieces as the third says */
    CALL_READ_MESSAGE, /* into that of the list of a struct msghdr at the second argument */
    CALL_WRITE, /* these: from such memory */
    CALL_WRITE_PIECES,
    CALL_WRITE_MESSAGE,
    CALL_USER, /* what it may do goes by the first argument, a user, from then on */
    CALL_USERS, /* by the second */
};

struct em_buffers { /* memory that a call under way fills, or reads */
    enum em_syscall_kind kind; /* CALL_OTHER: none */
    uint64_t address, count; /* of bytes or pieces */
};

#define RECENT_USES 64 /* pages of a thread whose uses are found without a search */

struct em_recent_use {
    uint64_t number; /* + 1; 0 when empty */
    struct page_use *use;
};

struct em_thread {
    struct em_thread_record record;
    int64_t budget; /* accesses until something must be decided; below zero: now */
    int64_t granted; /* what budget was set to */
    struct cache_core core;
    int64_t turn_left; /* accesses left in this turn */
    int64_t turn_given; /* what is not yet counted of it: turn_left when it was last (part.c) */
    uint64_t pace, pace_left; /* how fast it is now, and for how many turns more */
    int64_t turn_length;
    uint64_t turn_taken; /* lines from other cores, when it began, and those that the kernel copied since */
    int64_t gap_left; /* accesses until the next sample */
    int64_t turn_base; /* ns: time of the turn's start, 0 before the first */
    int64_t position; /* accesses since then: the time within the turn */
    uint64_t asked_at; /* where a system call under way puts the time, 0 if it does not */
    int64_t asked_host_ns;
    uint32_t scheduled; /* whom the system call under way gives a scheduler, 0: nobody */
    long slept; /* how often before the system call under way, -1: it is none to wait in */
    struct em_buffers buffers;
    uint64_t random;
    uint32_t index; /* of its record */
    bool holding; /* has the turn */
    bool block_open; /* the turn's header is written */
    bool spinning; /* gave up its turn in a spin loop */
    bool ended;
    bool pinned;
    bool to_come; /* counted among those whom the draw of turns waits for */
    enum { FUTEX_NONE, FUTEX_ASLEEP, FUTEX_CAME, FUTEX_WAKING } futex_state;
    uint32_t futex_value; /* that it waits to change */
    uint64_t futex;
    cpu_set_t allowed; /* its own affinity, when pinned */
    int32_t go; /* futex of one that waits: whether it has the turn (turns.c) */
    int64_t idle; /* instructions executed without memory access */
    struct em_window own; /* free schedule */
    struct em_late_access *late;
    uint32_t late_count, late_room;
    struct reach_core reach;
    struct em_shared_recent shared[REACH_RECENT];
    struct em_recent_use uses[RECENT_USES];
    struct em_frames *frames; /* NULL: it is not to be known who called whom */
    uint32_t call_written; /* that a sample is in unless another is told */
} __attribute__((aligned(512))); /* so that a few fill a page */

struct em_options {
    char dir[4096];
    uint64_t period, turn, seed;
    uint64_t skip, take; /* accesses to leave out, and to record (0: all) */
    bool cached, fair;
    bool transfers; /* count who takes lines from whom; with the cache model */
    bool uses; /* count who uses which page; in turns */
    bool calls; /* tell what calls samples are in */
    bool runtime; /* and what a thread runtime's code does */
    unsigned llc_own; /* how many of the last-level caches of several sizes are no larger than the machine's */
    bool part, marked; /* a shared word says when to record; so do the program's marks */
};

extern struct em_options em_options;
extern __thread struct em_thread *em_self __attribute__((tls_model("initial-exec")));

/* options.c */
bool em_options_read(int argc, char **argv);

enum em_jump { JUMP_OTHER, JUMP_CALL, JUMP_RETURN };
/* accesses.c; the callbacks are QEMU's */
void em_settle(struct em_thread *t);
void em_catch_up(struct em_thread *t);
enum em_counts { COUNT_TRANSFERS = 1, COUNT_USES = 2 }; /* of an access, beside loads and stores */
typedef void em_memory_callback(unsigned vcpu, uint32_t info, uint64_t addr, void *ip);
em_memory_callback *em_access_callback(unsigned counts);
em_memory_callback *em_jump_callback(enum em_jump jump, uint64_t ip, unsigned counts, void **word);
void em_on_idle_block(unsigned vcpu, void *instructions);
void em_on_spin(unsigned vcpu, void *unused);

/* calls.c: QEMU's callbacks */
void em_call_begins(int64_t number, uint64_t a1, uint64_t a2);
void em_call_returns(int64_t number);
void em_on_syscall(unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3);
void em_on_syscall_return(unsigned vcpu, int64_t number, int64_t result);

/* memory.c */
void em_memory_see(uint64_t guest, const void *at_host);
bool em_memory_seen(void);
uint64_t em_memory_guest(uint64_t at_host); /* the program's address */
size_t em_memory_read(uint64_t address, void *bytes, size_t size); /* how many there are to read */
bool em_memory_write(uint64_t address, const void *bytes, size_t size);

/* buffers.c */
void em_buffers_given(struct em_thread *t, enum em_syscall_kind kind, uint64_t a1, uint64_t a2, uint64_t a3);
void em_buffers_done(struct em_thread *t, int64_t result);

/* cpus.c */
bool em_cpus_option(const char *value);
bool em_cpus_shown(void);
void em_cpus_init(void);
void em_cpus_asked(int64_t number, uint64_t a1, uint64_t a2, uint64_t a3);
void em_cpus_answered(int64_t result);
void em_cpus_forked(void);

/* part.c */
extern bool em_recording; /* changes when no guest thread runs */
bool em_part_init(uint64_t id);
void em_part_register(uint64_t id);
void em_part_check(void);
bool em_part_marked(int64_t number, uint64_t begins);
void em_part_took(int64_t accesses);
int64_t em_part_room(void);
bool em_part_over(void);
void em_part_forked(void);

/* plugin.c */
void em_register(uint64_t id);
/* guest.c */
void em_guest_select(const char *target);
enum em_syscall_kind em_guest_syscall(int64_t number);
uint64_t em_guest_argument(uint64_t given);
bool em_guest_surely_accesses(const uint8_t *code, size_t bytes);
bool em_guest_spins(const uint8_t *code, size_t bytes);
enum em_jump em_guest_jump(const uint8_t *code, size_t bytes);

/* threads.c */
bool em_threads_init(void);
struct em_thread *em_thread_self(unsigned vcpu);
void em_thread_born(unsigned vcpu);
unsigned em_thread_vcpus(void);
uint32_t em_threads_made(void);
void em_threads_pause(void);
void em_threads_resume(void);
void em_thread_end(struct em_thread *t);
void em_thread_last_access(struct em_thread *t);
void em_thread_pin_if_many(struct em_thread *t);
void em_thread_unpin(struct em_thread *t);
void em_thread_unpin_other(uint32_t tid);
void em_thread_scheduled(uint32_t tid); /* it may run in real time from now on, or no longer */

/* slots.c */
struct em_thread *em_thread_at(uint32_t slot);
uint32_t em_thread_slots(void);
bool em_threads_alone(void);
uint32_t em_slot_free(void);
void em_slot_take(struct em_thread *t);
void em_slot_leave(struct em_thread *t);
void em_slots_forked(void);
void em_slots_forget_pages(void);

/* asleep.c */
bool em_thread_asleep(const struct em_thread *t);
bool em_thread_runs(const struct em_thread *t);

/* running.c */
void em_running_reset(void);
void em_running_begin(int64_t now, const struct em_thread *holder, struct em_thread *const *waiting, uint32_t count);
void em_running_end(int64_t now);

/* turns.c */
void em_turns_reset(void);
void em_turns_stop(void);
bool em_turn_take(struct em_thread *t, bool patient);
bool em_turn_pass(struct em_thread *t);
void em_turn_release(struct em_thread *t, bool entering);
void em_turns_await(int32_t threads);
bool em_turn_wanted(void);

/* futex.c */
bool em_futex_asked(struct em_thread *t, uint64_t address, int64_t operation, uint32_t value);
void em_futex_answered(struct em_thread *t, int64_t result);
void em_futex_ends(const struct em_thread *t);
void em_futex_forked(void);

/* clock.c */
int64_t em_host_ns(void);
int64_t em_clock_last(void);
void em_clock_advance(int64_t now);
void em_clock_begin(void);
void em_clock_waited(int64_t child);
int64_t em_clock_of(const struct em_thread *t);
void em_clock_asked(struct em_thread *t, int64_t which, uint64_t answer);
void em_clock_answered(struct em_thread *t);
void em_clock_forked(void);

/* pages.c */
bool em_pages_init(void);
bool em_pages_placed(uint64_t number); /* whether somebody has touched a page */
void em_pages_forked(void);
/* forgotten: told the index of each. */
void em_pages_forget(uint64_t start, uint64_t bytes, void (*forgotten)(uint32_t index));

/* lines.c */
void em_transfer(struct em_thread *t, uint64_t line, bool store); /* after its caches have answered */
/* By the kernel, for the thread: to this memory (store), or from it. */
void em_lines_copied(struct em_thread *t, uint64_t start, uint64_t end, bool store);

/* uses.c */
void em_uses_find(struct em_thread *t, struct em_recent_use *recent, uint64_t number);
void em_uses_check(const struct em_thread *t);
void em_uses_forget(uint64_t start, uint64_t bytes);
void em_uses_before(uint64_t number, int64_t now);
void em_uses_forked(void);

/* The use of the page of an address by a thread. */
static inline struct em_recent_use *em_recent_use(struct em_thread *t, uint64_t addr) {
    uint64_t number = addr >> PAGE_SHIFT;
    return &t->uses[(number ^ number >> 6 ^ number >> 12) % RECENT_USES];
}

static inline struct page_use *em_use(struct em_thread *t, uint64_t addr) {
    uint64_t number = addr >> PAGE_SHIFT;
    struct em_recent_use *recent = em_recent_use(t, addr);
    if (unlikely(recent->number != number + 1)) em_uses_find(t, recent, number);
    return recent->use;
}

/* before.c */
void em_before_second_thread(void); /* is about to run */
void em_before_pause(void);
void em_before_resume(void);
void em_before_tell(int64_t now); /* once there are files */
void em_before_forked(void);

/* runtime.c */
void em_runtime_init(void);
bool em_runtime_code(uint64_t address);
void em_runtime_forget(void);

/* spool.c */
void em_spool_call(uint32_t outer, uint64_t ip);
void em_spool_running(uint64_t first, uint64_t second);
void em_spool_transfers(uint64_t first, uint64_t second);
void *em_spool_table(size_t bytes);
struct page_use *em_spool_uses(void);
void em_spool_uses_end(struct page_use *room);
void em_spool_footprint(uint64_t bytes);
enum em_end { EM_END_UNKNOWN, EM_END_EXIT, EM_END_EXEC };
void em_spool_ends(enum em_end how);
void em_spool_hold_folder(void);
void em_spool_give(uint32_t user);
void em_spool_open(int64_t now, int64_t first);
bool em_spool_latest(int64_t pid, struct em_process_header *found);
void em_spool_same_clock(const struct em_process_header *before); /* what is opened next goes by its clock */
bool em_spool_is_same_clock(const struct em_process_header *other);
void em_spool_time(int64_t now);
void em_spool_clock(int64_t host, int64_t ours);
struct em_thread *em_spool_new_thread(void);
void em_spool_sample(struct em_thread *t, uint64_t addr, uint64_t ip, uint32_t call, bool store, enum cache_level level,
                     struct reach reach);

static inline uint64_t em_next_random(uint64_t *state) {
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x;
}

#endif
