/* What the topics of the preload library share. Everything here is hidden; only the wrapped libc names are exported.
 *
 * The same sources make two libraries: preload.so sees (threads, regions, processes) and logs all of it;
 * enforce.so (-DNUMAPLAN_ENFORCE, with launcher/native/enforce) sees the same and places what a plan names.
 * No hook allocates, none writes to the program's descriptors, all keep errno.
 */
#ifndef NUMAPLAN_PRELOAD_H
#define NUMAPLAN_PRELOAD_H

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#ifdef NUMAPLAN_ENFORCE
enum { NP_RECORDING = 0 };
#else
enum { NP_RECORDING = 1 };
#endif

enum {
    NP_LARGE = 64 * 1024,  /* blocks below are not told apart: one size compare is all they cost */
    NP_PATH = 4096,
    NP_BUILD_ID = 20,
};

#define NP_NO_THREAD UINT32_MAX
#define NP_HOT __attribute__((hot))
#define NP_COLD __attribute__((cold, noinline))

/* ---- real.c: the functions that ours stand before ---- */

struct np_real {
    const char *name;
    _Atomic(void *) function;
};

void *np_real_find(struct np_real *real);
void np_reals_find(void); /* all that NP_REAL names anywhere */

static inline void *np_real(struct np_real *real) {
    void *found = atomic_load_explicit(&real->function, memory_order_relaxed);
    return __builtin_expect(found != NULL, 1) ? found : np_real_find(real);
}

/* Declares `real`, of the type given. */
#define NP_REAL(type, name, ...)                                                                        \
    static struct np_real next __attribute__((section("np_reals"), used)) = {name, NULL};               \
    type (*const real)(__VA_ARGS__) = np_real(&next)

/* ---- log.c: records of 64 bytes in a shared file mapping; profiler/identity/log.py reads them ---- */

enum np_kind {
    NP_PROCESS = 1,  /* text: executable, arguments, each ended by a NUL */
    NP_THREAD_START, /* a: tid, b: parent's number << 32 | child number, c: pthread_t, d: stack start, e: stack bytes */
    NP_THREAD_END,   /* b, c: name */
    NP_THREAD_NAME,  /* b, c: name, d: pthread_t */
    NP_ALLOC,        /* a: enum np_region, b: address, c: bytes, d: return address, e: sequence */
    NP_FREE,         /* a: enum np_region, b: address, c: bytes (mappings only) */
    NP_MODULE,       /* a: is the executable, b: load bias, c: time of the scan before, e: length of the build id; text: build id, path */
    NP_SEGMENT,      /* a: flags, b: load bias, c: address, d: bytes, e: file offset */
    NP_MODULE_END,   /* b: load bias */
    NP_AREA,         /* b: address, c: bytes: anonymous memory found at the end */
    NP_APPLIED = 32, /* records of enforce.so, see launcher/native/enforce/enforce.h */
};

enum np_region { NP_HEAP = 1, NP_MMAP, NP_FILE, NP_ARENA /* memory that malloc cuts up */ };

struct np_record {
    _Atomic uint32_t check; /* written last: FNV-1a of the rest, never 0 */
    uint16_t kind;
    uint16_t text_slots; /* further slots of 64 bytes that hold text */
    uint64_t time_ns;
    uint32_t thread;
    uint32_t a;
    uint64_t b, c, d, e;
    uint64_t text_bytes;
};
_Static_assert(sizeof(struct np_record) == 64, "the reader relies on it");

bool np_log_open(void);       /* lazily: a forked child that only execs never has a file */
void np_log_forget(void);     /* in a forked child: the mapping is the parent's */
uint32_t np_log_image(void);  /* number of this process image's log, 0 when none is open */
void np_log(uint16_t kind, uint32_t thread, uint32_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e);
void np_log_text(const struct np_record *fields, const void *text, size_t bytes);
uint64_t np_now(void);

/* ---- processes.c: the control file that all processes of a job map ---- */

struct np_entry { /* one process, 64 bytes */
    _Atomic uint32_t pid;
    uint32_t parent; /* entry number + 1, 0 for the first */
    uint32_t number; /* which child of its parent, from 1 */
    uint32_t rank;   /* MPI rank + 1 where the name starts with it, else 0 */
    _Atomic uint32_t children;
    uint32_t in_job;  /* a rank stands above it */
    uint64_t hash;    /* of the name */
    uint64_t start_ns;
    _Atomic uint64_t end_ns;
    uint32_t parent_image; /* log of the parent at the time of fork, 0 for a child that was born by exec */
    uint32_t spare[3];
};
_Static_assert(sizeof(struct np_entry) == 64, "the reader relies on it");

extern const char *np_directory;
bool np_processes_open(void);
struct np_entry *np_process(void);
struct np_entry *np_process_parent(const struct np_entry *entry); /* NULL: the first of its job */
uint32_t np_process_entry(void);
uint32_t np_next_image(void);
uint64_t np_fork_time(void);
uint32_t np_inherited_image(void); /* log whose regions this image began with, 0: none */
void np_fork_prepare(void);
void np_fork_child(void);
void np_process_end(void);

/* ---- start.c ---- */

bool np_active(void); /* starts the library if libc is ready; false when this process is not ours to see */
bool np_awake(void);  /* the same, without starting it */
void np_exec_start(void);
void np_log_process(void);

/* ---- threads.c ---- */

struct np_thread {
    bool known;
    uint32_t number;   /* in the process, main 0 */
    uint32_t children; /* created so far */
    uint32_t sequence; /* large blocks allocated so far */
    bool shifted;      /* its blocks do not come in the plan's order (enforce.so) */
    uint64_t hash;     /* of the creation path */
};

extern __thread struct np_thread np_self __attribute__((tls_model("initial-exec")));
void np_threads_start(bool forked);
uint32_t np_thread_number(void);

/* ---- live.c: addresses of large blocks that live ---- */

/* Every live block lies within [np_live_low, np_live_high), which only grows; at first it is everything. */
extern _Atomic uintptr_t np_live_low, np_live_high;
void np_live_none(void); /* from now on the real free() is known: nothing lives yet */
void np_live_span(uintptr_t start, uintptr_t end);
bool np_live_add(uintptr_t address);
bool np_live_remove(uintptr_t address); /* false when it is not one */
void np_live_watch_all(void);           /* from now on every free() is looked at */

enum { NP_LIVE_FILTER = 1 << 14 };
extern _Atomic uint16_t np_live_filter[NP_LIVE_FILTER]; /* how many live blocks have this key */

static inline uint64_t np_live_key(uintptr_t address) { return (uint64_t)(address >> 4) * 0x9E3779B97F4A7C15ull; }

/* Never false for a live one; fast, as every free() asks. */
static inline bool np_live_near(uintptr_t address) {
    return address >= atomic_load_explicit(&np_live_low, memory_order_relaxed) &&
           address < atomic_load_explicit(&np_live_high, memory_order_relaxed);
}

/* The same, more exactly. */
static inline bool np_live_maybe(uintptr_t address) {
    return atomic_load_explicit(&np_live_filter[np_live_key(address) >> 50], memory_order_relaxed) != 0;
}

/* ---- modules.c ---- */

void np_modules_scan(void); /* cheap when nothing was loaded or unloaded */
void np_modules_before_fork(void);
void np_modules_after_fork(bool child);
bool np_module_of(uintptr_t code, uint64_t *name_hash, uintptr_t *bias);
void np_areas_log(void);

/* ---- names ---- */

#define NP_HASH_START 14695981039346656037ull

static inline uint64_t np_hash(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * 1099511628211ull;
    return hash;
}

#define np_hash_of(literal) np_hash(NP_HASH_START, literal, sizeof(literal) - 1)

/* FNV-1a of "NAME.NUMBER" from that of "NAME". */
static inline uint64_t np_hash_child(uint64_t hash, uint32_t number) {
    char digits[12];
    int at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    digits[--at] = '.';
    return np_hash(hash, digits + at, sizeof digits - (size_t)at);
}

/* ---- what enforce.so does with what is seen ---- */

struct np_module { /* one that has come; start to end: what it holds of data, 0 to 0: nothing */
    uintptr_t bias, start, end;
    uint64_t name_hash;
    const void *build_id;
    size_t build_id_bytes;
};

#ifdef NUMAPLAN_ENFORCE
void np_enforce_start(void);
void np_enforce_fork(void);
void np_enforce_thread(uint32_t number, uint64_t path_hash, uintptr_t stack, size_t stack_bytes);
void np_enforce_thread_end(uint32_t number, uint64_t path_hash);
bool np_enforce_region(enum np_region kind, uintptr_t address, size_t bytes, uintptr_t site); /* it is planned */
void np_enforce_region_gone(uintptr_t address);
void np_enforce_leaving(uintptr_t address, size_t bytes); /* it will be unmapped, moved or mapped anew */
void np_enforce_freeing(void *block);
void np_enforce_spawn(int change); /* 1: a thread is about to be made, -1: it was not */
void np_enforce_module(const struct np_module *module);
void np_enforce_end(void);
bool np_enforce_wants_regions(void);
bool np_enforce_logs(void); /* a process that the plan does not name needs no file */
#else
static inline void np_enforce_start(void) {}
static inline void np_enforce_fork(void) {}
static inline void np_enforce_thread(uint32_t number, uint64_t path_hash, uintptr_t stack, size_t stack_bytes) {
    (void)number, (void)path_hash, (void)stack, (void)stack_bytes;
}
static inline void np_enforce_thread_end(uint32_t number, uint64_t path_hash) { (void)number, (void)path_hash; }
static inline bool np_enforce_region(enum np_region kind, uintptr_t address, size_t bytes, uintptr_t site) {
    return (void)kind, (void)address, (void)bytes, (void)site, false;
}
static inline void np_enforce_region_gone(uintptr_t address) { (void)address; }
static inline void np_enforce_leaving(uintptr_t address, size_t bytes) { (void)address, (void)bytes; }
static inline void np_enforce_freeing(void *block) { (void)block; }
static inline void np_enforce_spawn(int change) { (void)change; }
static inline void np_enforce_module(const struct np_module *module) { (void)module; }
static inline void np_enforce_end(void) {}
static inline bool np_enforce_wants_regions(void) { return false; }
static inline bool np_enforce_logs(void) { return false; }
#endif

#pragma GCC visibility pop
#endif
