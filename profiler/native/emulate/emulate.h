/* The emulation plugin: what its parts share.
 *
 * plugin.c   QEMU's side: options, translation, the callbacks an access runs through
 * calls.c    the guest's system calls
 * threads.c  guest threads: attach, exit, fork
 * turns.c    whose turn it is: one thread at a time owns all shared state
 * cache.c    the cache model that gives an access its level
 * sets.h     one cache of it
 * pages.c    which node each page lives on
 * spool.c    the files that Python reads
 * futex.c    who sleeps, and who wakes whom
 * clock.c    the recording's clock, and where it meets the host's
 * guest.c    what depends on the guest's architecture
 *
 * Under the fair schedule everything below is touched only by the thread whose turn it is (or, for `struct
 * thread`, by the thread itself), so nothing is atomic. Under the free one the model has a lock.
 */
#ifndef NUMAPLAN_EMULATE_H
#define NUMAPLAN_EMULATE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define LINE_SHIFT 6
#define PAGE_SHIFT 12
#define MAX_THREADS 65536 /* living at a time; Linux allows a process fewer */

/* Positions in LEVELS of profiler/trace/schema.py. */
enum level { LEVEL_UNKNOWN = 0, LEVEL_L1 = 1, LEVEL_L2 = 3, LEVEL_L3 = 4, LEVEL_LOCAL = 5, LEVEL_REMOTE = 6, LEVEL_REMOTE_CACHE = 7 };

/* One thread as backends/emulate_spool.py reads it; at the start of `struct thread`, which lies in the file. */
struct thread_record {
    uint32_t tid;
    uint32_t birth;   /* how many threads the process had made before: it sits on the birth-th cpu, wrapping */
    int64_t start_ns; /* by the recording's clock (clock.c); -1 before its first turn */
    int64_t end_ns;   /* -1 while it lives */
    uint64_t loads, stores;
    uint64_t l1_misses, l2_misses, llc_local, llc_remote, remote_cache, coherence;
    uint64_t lost; /* samples that found no room */
};

struct process_header {
    char magic[8];
    uint32_t version;
    uint32_t pid;
    uint32_t record_bytes; /* sizeof(struct thread) */
    uint32_t error;        /* errno of the first failed write, 0 if none */
    int64_t start_ns; /* CLOCK_MONOTONIC */
    uint64_t threads; /* records in use */
    int64_t first_ns, last_ns;       /* by the recording's clock */
    int64_t origin_pid, origin_start_ns; /* the process that it was forked from, 0 if none: its clock goes on here */
};

/* An access that could not wait for its thread's turn (turns.c says when). */
struct late_access {
    uint64_t addr, ip;
    uint32_t rw;
};

/* Where samples and times go: 16-byte records in a mapped window of the process's file. */
struct window {
    uint64_t *next, *end;
};

/* One private or shared level: set-associative, bit pseudo-LRU. Tags are 0 when empty. */
struct cache {
    uint32_t *tags;    /* [sets][stride] */
    uint64_t *sharers; /* [sets][stride], shared caches only: which slots may hold the line */
    uint32_t *used;    /* [sets], one bit a way: touched lately */
    uint32_t *owned;   /* [sets], one bit a way: written here, by nobody else since */
    uint32_t set_mask, set_shift, ways, stride;
};

struct page {
    uint64_t number; /* + 1; 0 when empty */
    uint64_t domains : 48, home : 16; /* L3s it went through, modulo 48; index of the first node */
};

struct thread {
    struct thread_record record;
    int64_t budget;    /* accesses until something must be decided; below zero: now */
    int64_t granted;   /* what budget was set to */
    uint64_t *l1;      /* [sets][stride] line<<1 | owned, most recent first; 0 when empty */
    struct cache l2;
    int64_t turn_left; /* accesses left in this turn */
    int64_t gap_left;  /* accesses until the next sample */
    int64_t turn_base; /* ns: time of the turn's start, 0 before the first */
    int64_t position;  /* accesses since then: the time within the turn */
    uint64_t asked_at; /* where a system call under way puts the time, 0 if it does not */
    int64_t asked_host_ns;
    uint64_t random;
    uint32_t index; /* of its record */
    uint32_t slot;  /* of its private caches, reused after its end */
    uint32_t node, domain;
    bool holding;    /* has the turn */
    bool block_open; /* the turn's header is written */
    bool spinning;   /* gave up its turn in a spin loop */
    bool ended;
    bool pinned;
    bool to_come;    /* counted among those whom the draw of turns waits for */
    enum { FUTEX_NONE, FUTEX_ASLEEP, FUTEX_CAME, FUTEX_WAKING } futex_state;
    uint32_t futex_value; /* that it waits to change */
    uint64_t futex;
    cpu_set_t allowed; /* its own affinity, when pinned */
    int32_t go;        /* futex of one that waits: whether it has the turn (turns.c) */
    int64_t idle;      /* instructions executed without memory access */
    struct window own; /* free schedule */
    struct late_access *late;
    uint32_t late_count, late_room;
} __attribute__((aligned(512))); /* so that a few fill a page */

struct options {
    char dir[4096];
    uint64_t period, turn, seed;
    bool cached, fair, inclusive;
    uint32_t l1_ways, l1_sets, l2_ways, l2_sets, l3_ways, l3_sets;
    uint32_t l1_shift; /* log2 of the L1's stride */
    uint32_t *cpu_nodes, cpus, *cpu_domains, domains, *domain_nodes; /* a domain: the cpus of one L3 */
};

extern struct options options;
extern __thread struct thread *self __attribute__((tls_model("initial-exec")));

/* plugin.c */
void settle(struct thread *t);
void catch_up(struct thread *t);

/* calls.c: QEMU's callbacks */
void on_syscall(uint64_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);
void on_syscall_return(uint64_t id, unsigned vcpu, int64_t number, int64_t result);

/* guest.c */
enum syscall_kind {
    CALL_OTHER,
    CALL_QUICK, /* never waits for another thread */
    CALL_EXIT,
    CALL_EXIT_ALL,
    CALL_AFFINITY,
    CALL_CLONE,
    CALL_CLONE3,
    CALL_FORK,
    CALL_EXEC,
    CALL_UNMAP,
    CALL_CLOCK,
    CALL_FUTEX,
    CALL_YIELD
};
void guest_select(const char *target);
enum syscall_kind guest_syscall(int64_t number);
bool guest_surely_accesses(const uint8_t *code, size_t bytes);
bool guest_spins(const uint8_t *code, size_t bytes);

/* threads.c */
bool threads_init(void);
struct thread *thread_self(unsigned vcpu);
void thread_born(unsigned vcpu);
void thread_end(struct thread *t);
void thread_last_access(struct thread *t);
void thread_pin_if_many(struct thread *t);
void thread_unpin(struct thread *t);
void thread_unpin_other(uint32_t tid);
struct thread *thread_at(uint32_t slot);
uint32_t thread_slots(void);
bool threads_alone(void);

/* turns.c */
void turns_reset(void);
bool turn_take(struct thread *t, bool patient);
bool turn_pass(struct thread *t);
void turn_release(struct thread *t, bool entering);
void turns_await(int32_t threads);
bool turn_wanted(void);
int64_t turns_last(void);

/* futex.c */
bool futex_asked(struct thread *t, uint64_t address, int64_t operation, uint32_t value);
void futex_answered(struct thread *t, int64_t result);
void futex_ends(const struct thread *t);
bool futex_asleep(const struct thread *t);
void futex_forked(void);

/* clock.c */
int64_t host_ns(void);
int64_t clock_of(const struct thread *t);
void clock_asked(struct thread *t, int64_t which, uint64_t answer);
void clock_answered(struct thread *t);
void clock_forked(void);

/* cache.c */
bool cache_init(void);
bool cache_attach(struct thread *t, const struct thread *previous);
enum level cache_miss(struct thread *t, uint64_t line, bool store);
void cache_forked(void);
void cache_forget_pages(uint64_t start, uint64_t bytes);

/* pages.c */
bool pages_init(void);
struct page *page_touch(uint64_t number, uint32_t node, uint32_t domain);
void pages_forget(uint64_t start, uint64_t bytes);
void *zeroed(size_t bytes);

/* spool.c */
void spool_open(void);
void spool_time(int64_t now);
void spool_clock(int64_t host, int64_t ours);
struct thread *spool_new_thread(void);
void spool_sample(struct thread *t, uint64_t addr, uint64_t ip, bool store, enum level level);

static inline uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x;
}

#endif
