/* What the topics of the preload library share. Everything here is hidden; only the wrapped libc names are exported.
 *
 * It sees threads, regions, modules and processes, and names them so that a later run finds them again; hooks.h says
 * what is done with them.
 */
#ifndef NUMAPLAN_PRELOAD_H
#define NUMAPLAN_PRELOAD_H

#include "hooks.h"
#include "processes.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#pragma GCC visibility push(hidden)

enum {
    NP_LARGE = 64 * 1024,  /* blocks below are not distinguished: one size compare is all they cost */
    NP_BUILD_ID = 20,
};

#define NP_NO_THREAD UINT32_MAX
#define NP_HOT __attribute__((hot))
#define NP_COLD __attribute__((cold, noinline))
#define NP_THREAD __thread __attribute__((tls_model("initial-exec"))) /* a thread's own, without an allocation */

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
#define NP_REAL(type, name, ...)                                                          \
    static struct np_real next __attribute__((section("np_reals"), used)) = {name, NULL}; \
    type (*const real)(__VA_ARGS__) = np_real(&next)

/* ---- log.c: records of 64 bytes in a shared file mapping; profiler/identity/log.py reads them ---- */

enum np_kind {
    NP_PROCESS = 1,  /* text: executable, arguments, each ended by a NUL */
    NP_THREAD_START, /* a: tid, b: parent's number << 32 | child number, c: pthread_t, d: stack start, e: stack bytes */
    NP_THREAD_END, /* b, c: name */
    NP_THREAD_NAME, /* b, c: name, d: pthread_t */
    NP_ALLOC, /* a: enum np_region | number of the chain of calls << 8, 0: not known, b: address, c: bytes, d: return address, e: sequence */
    NP_FREE, /* a: enum np_region, b: address, c: bytes (mappings only) */
    NP_MODULE, /* a: is the executable, b: load bias, c: time of the scan before, e: length of the build id;
                        text: build id, path */
    NP_SEGMENT, /* a: flags, b: load bias, c: address, d: bytes, e: file offset */
    NP_MODULE_END, /* b: load bias */
    NP_AREA, /* b: address, c: bytes: anonymous memory found at the end */
    NP_MARK, /* a: 1 the program says that its work begins, 0 that it ends */
    NP_SANDBOX, /* the process restricted its system calls: what comes now is what needs none */
    NP_NOTHING, /* and its text */
    NP_CHAIN, /* a: number; text: return addresses, innermost first */
    NP_OTHERS = 32, /* and up: records of who uses this library, which it does not know */
};

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

struct np_log_header {
    char magic[8];
    uint32_t version, slot_bytes;
    uint32_t entry, image, pid, parent_image;
    uint64_t start_ns, fork_ns;
    _Atomic uint64_t cursor; /* slots claimed, those of the header included */
    _Atomic uint64_t dropped; /* records for which there was no room */
    uint64_t spare[8];
};

static inline uint32_t np_check_of(const struct np_record *record) {
    const size_t skip = sizeof record->check;
    uint32_t check = (uint32_t)np_hash(NP_HASH_START, (const char *)record + skip, sizeof *record - skip);
    return check ? check : 1;
}

bool np_log_open(void); /* lazily: a forked child that only execs never has a file */
void np_log_keep_room(void); /* for what is logged when it cannot grow any more; no other thread may grow it */
void np_log_forget(void); /* in a forked child: the mapping is the parent's */
const char *np_log_path(void); /* of the file, NULL when none is open */
uint32_t np_log_image(void); /* number of this process image's log, 0 when none is open */
void np_log(uint16_t kind, uint32_t thread, uint32_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e);
void np_log_text(const struct np_record *fields, const void *text, size_t bytes);

/* ---- start.c ---- */

bool np_active(void); /* starts the library if libc is ready; false when this process is not ours to see */
bool np_awake(void); /* the same, without starting it */
pid_t np_home(void); /* the process; a child of vfork is another */
bool np_only_carries(const char *name); /* this library, for other programs (perf, the emulator) */

/* ---- sandbox.c: processes that restrict their system calls ---- */

bool np_sandboxed(void); /* this one does: no call is made for our sake */
/* The same, the kernel asked, too: before calls that filters forbid. */
bool np_may_call(void);
/* Between these two calls may be made, but where np_enter says no: then there is nothing to leave. */
bool np_enter(void);
void np_leave(void);

/* ---- self.c ---- */

struct np_thread {
    bool known;
    uint32_t number; /* in the process, main 0 */
    uint32_t children; /* created so far */
    uint32_t sequence; /* large blocks allocated so far */
    uint64_t hash; /* of the creation path */
    uintptr_t stack_low, stack_high; /* of its own stack; 0: not known */
    const void *gives; /* what a hook wants the threads to have that it makes, until that says otherwise */
    void *hands; /* what a hook hands on to the thread that is being made: it finds it here */
    bool reserves; /* the mapping that it makes cannot be accessed yet */
    bool chosen; /* its cpus, by who made it */
};

extern NP_THREAD struct np_thread np_self;
void np_threads_start(bool forked);
uint32_t np_thread_number(void); /* the calling one's */
pid_t np_tid(void); /* without a system call */
pid_t np_tid_of(pthread_t thread); /* the same of another; 0: it has ended */
uint32_t np_new_thread(void); /* a number for one that is about to be made */
size_t np_default_stack(void); /* bytes */

/* ---- regions.c ---- */

struct np_call { /* where a hook was called from: the code, and the stack above the return address */
    uintptr_t site;
    const uintptr_t *frame;
};

#define NP_CALLER ((struct np_call){(uintptr_t)__builtin_return_address(0), __builtin_dwarf_cfa()})

void np_mapping_made(uintptr_t address, size_t bytes, struct np_call call); /* at least NP_LARGE */
void np_mapping_gone(uintptr_t address, size_t bytes);

/* ---- live.c: addresses of large blocks that live ---- */

/* Every live block lies within [np_live_low, np_live_high), which only grows; at first it is everything. */
extern _Atomic uintptr_t np_live_low, np_live_high;
void np_live_none(void); /* from now on the real free() is known: nothing lives yet */
void np_live_span(uintptr_t start, uintptr_t end);
bool np_live_add(uintptr_t address);
bool np_live_remove(uintptr_t address); /* false when it is not one */
void np_live_watch_all(void); /* from now on every free() is checked */

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

/* ---- maps.c ---- */

struct np_mapping {
    uintptr_t start, end;
    bool readable, writable, shared;
    bool anonymous; /* of no file; the heap is, the stack is not */
};

/* Call see with each mapping by address until it returns false. */
void np_maps(bool (*see)(const struct np_mapping *mapping, void *context), void *context);

/* ---- modules.c ---- */

void np_modules_scan(void); /* cheap when nothing was loaded or unloaded */
void np_modules_before_fork(void);
void np_modules_after_fork(bool child);

struct np_tables { /* a module's tables for exceptions, in a segment that can be read from low to high */
    uintptr_t header, low, high;
};

bool np_module_tables(uintptr_t code, struct np_tables *tables);
bool np_module_of(uintptr_t code, uint64_t *name_hash, uintptr_t *bias);

#pragma GCC visibility pop
#endif
