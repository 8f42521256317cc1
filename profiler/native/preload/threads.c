/* Threads: each is its creation path. The parent takes the child's number before it creates it, and the child
 * is named (and a hook told of it) before the first instruction of its function.
 */
#include "preload.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

struct start { /* what a new thread must know */
    union {
        void *(*posix)(void *);
        int (*c11)(void *);
    } function;
    void *argument;
    struct np_thread self;
    uint32_t parent;
    uintptr_t stack; /* 0 when pthread makes it */
    size_t stack_bytes;
};

/* Who came first to a package, if its creator has something to do for the thread before that runs. */
enum first { NOBODY, CREATOR, THREAD, CREATOR_IS_DONE };

struct package { /* taken from a fixed pool, so that no arena is made in the thread */
    _Atomic bool used;
    bool from_heap;
    bool bound; /* by the creator */
    _Atomic uint32_t first;
    struct start start;
};

enum { POOL = 1024, PAGE = 4096 };
static struct package pool[POOL];
static _Atomic uint32_t pool_hint;

static struct package *take_package(void) {
    uint32_t hint = atomic_fetch_add(&pool_hint, 1);
    for (uint32_t i = 0; i < POOL; i++) {
        struct package *package = &pool[(hint + i) % POOL];
        bool expected = false;
        if (atomic_compare_exchange_strong(&package->used, &expected, true)) return package;
    }
    struct package *package = calloc(1, sizeof *package);
    if (package) package->from_heap = true;
    return package;
}

static void give_back(struct package *package) {
    if (package->from_heap) free(package);
    else atomic_store_explicit(&package->used, false, memory_order_release);
}

static void name_child(struct start *start) {
    uint32_t child = np_self.known ? ++np_self.children : 0;
    if (np_self.known) NP_TELL(thread_coming, 1);
    start->parent = np_thread_number();
    start->self = (struct np_thread){.known = np_self.known, .number = np_new_thread()};
    start->self.gives = np_self.gives;
    start->self.hands = np_self.hands;
    start->self.hash = np_hash_child(np_self.hash, child);
    start->self.children = child; /* until born: which child of its parent it is */
}

static void unname_child(void) {
    if (!np_self.known) return;
    np_self.children--;
    NP_TELL(thread_coming, -1);
}

/* glibc puts the thread's descriptor at the top of the stack that it makes. */
static void find_stack(struct start *start) {
    if (start->stack) return;
    uintptr_t top = ((uintptr_t)pthread_self() + PAGE) & ~(uintptr_t)(PAGE - 1);
    start->stack = top - start->stack_bytes;
}

static void born(struct start *start, bool bound) {
    uint32_t child = start->self.children;
    start->self.children = 0;
    np_self = start->self;
    if (!np_self.known) return;
    find_stack(start);
    np_self.stack_low = start->stack;
    np_self.stack_high = start->stack + start->stack_bytes;
    uintptr_t descriptor = (uintptr_t)pthread_self();
    if (descriptor > np_self.stack_low && descriptor < np_self.stack_high) np_self.stack_high = descriptor;
    np_log(NP_THREAD_START, np_self.number, (uint32_t)np_tid(), (uint64_t)start->parent << 32 | child,
           (uint64_t)pthread_self(), start->stack, start->stack_bytes);
    NP_TELL(thread_born, np_self.number, np_self.hash, start->stack, start->stack_bytes, bound);
}

static void log_name(uint16_t kind, uint32_t thread, const char name[16], uint64_t handle) {
    uint64_t words[2];
    memcpy(words, name, sizeof words);
    np_log(kind, thread, 0, words[0], words[1], handle, 0);
}

static void died(void *unused) {
    (void)unused;
    if (!np_self.known) return;
    char name[16] = "";
    if (np_enter()) {
        if (np_may_call()) prctl(PR_GET_NAME, name);
        np_leave();
    }
    NP_TELL(thread_ends, np_self.number, np_self.hash);
    log_name(NP_THREAD_END, np_self.number, name, 0);
}

/* Also where calls are restricted: whoever makes threads may make this one. */
static void futex(_Atomic uint32_t *word, int what, uint32_t value) {
    int saved = errno;
    syscall(SYS_futex, word, what, value, NULL);
    errno = saved;
}

/* The thread may have ended, and what its creator keeps of it be gone, unless it waits for us. */
static void created(struct package *package, const pthread_t *thread) {
    uint32_t first = NOBODY;
    if (!np_hooks.thread_made) return; /* the thread has given it back */
    if (!atomic_compare_exchange_strong(&package->first, &first, CREATOR)) {
        give_back(package);
        return;
    }
    if (package->start.self.known && !package->start.self.chosen)
        package->bound = np_hooks.thread_made(package->start.self.number, package->start.self.hash, *thread);
    if (atomic_exchange(&package->first, CREATOR_IS_DONE) == THREAD) futex(&package->first, FUTEX_WAKE_PRIVATE, 1);
}

/* When its creator is done with it; true: that has bound the thread. */
static bool take_over(struct package *package, struct start *start) {
    *start = package->start;
    uint32_t first = np_hooks.thread_made ? atomic_exchange(&package->first, THREAD) : CREATOR_IS_DONE;
    if (first == NOBODY) return false; /* the creator gives it back */
    while (first == CREATOR && atomic_load(&package->first) == THREAD)
        futex(&package->first, FUTEX_WAIT_PRIVATE, THREAD);
    bool bound = package->bound;
    give_back(package);
    return bound;
}

static void *run_posix(void *package) {
    struct start start;
    bool bound = take_over(package, &start);
    born(&start, bound);
    void *result;
    pthread_cleanup_push(died, NULL);
    result = start.function.posix(start.argument);
    pthread_cleanup_pop(1);
    return result;
}

static int run_c11(void *package) {
    struct start start;
    bool bound = take_over(package, &start);
    born(&start, bound);
    int result;
    pthread_cleanup_push(died, NULL);
    result = start.function.c11(start.argument);
    pthread_cleanup_pop(1);
    return result;
}

static void stack_of(const pthread_attr_t *attributes, struct start *start) {
    start->stack = 0;
    start->stack_bytes = np_default_stack();
    if (!attributes) return;
    void *address;
    size_t bytes;
    pthread_attr_getstacksize(attributes, &start->stack_bytes);
    if (pthread_attr_getstack(attributes, &address, &bytes) == 0 && (uintptr_t)address + bytes != 0)
        start->stack = (uintptr_t)address;
}

/* All are set where nobody chose. */
static bool chooses_cpus(const pthread_attr_t *attributes) {
    cpu_set_t cpus;
    return attributes &&
           (pthread_attr_getaffinity_np(attributes, sizeof cpus, &cpus) || CPU_COUNT(&cpus) < CPU_SETSIZE);
}

/* NULL when the thread cannot be followed (no memory, or this process is not ours to see). */
static struct package *prepare(const pthread_attr_t *attributes, void *argument) {
    if (!np_active()) return NULL;
    np_log_open(); /* by one thread, before there are several */
    np_modules_scan();
    struct package *package = take_package();
    if (!package) return NULL;
    package->bound = false;
    atomic_store(&package->first, NOBODY);
    package->start.argument = argument;
    stack_of(attributes, &package->start);
    name_child(&package->start);
    package->start.self.chosen = chooses_cpus(attributes);
    return package;
}

static void not_created(struct package *package) {
    unname_child();
    give_back(package);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument) {
    NP_REAL(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    struct package *package = prepare(attributes, argument);
    if (!package) return real(thread, attributes, function, argument);
    package->start.function.posix = function;
    int error = real(thread, attributes, run_posix, package);
    if (error) not_created(package);
    else created(package, thread);
    return error;
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *argument) {
    NP_REAL(int, "thrd_create", thrd_t *, thrd_start_t, void *);
    struct package *package = prepare(NULL, argument);
    if (!package) return real(thread, function, argument);
    package->start.function.c11 = function;
    int error = real(thread, run_c11, package);
    if (error != thrd_success) not_created(package);
    else created(package, (const pthread_t *)thread);
    return error;
}

int pthread_setname_np(pthread_t thread, const char *name) {
    NP_REAL(int, "pthread_setname_np", pthread_t, const char *);
    int error = real(thread, name);
    if (error || !np_active()) return error;
    char padded[16] = "";
    strncpy(padded, name, sizeof padded - 1);
    log_name(NP_THREAD_NAME, np_thread_number(), padded, (uint64_t)thread);
    return 0;
}

/* A thread made by clone() may share its creator's thread-local storage: it must not touch np_self. */
static int run_clone(void *package) {
    struct start *start = package;
    np_log(NP_THREAD_START, start->self.number, np_sandboxed() ? 0 : (uint32_t)gettid(),
           (uint64_t)start->parent << 32 | start->self.children, 0, 0, 0);
    NP_TELL(thread_born, start->self.number, start->self.hash, 0, 0, false);
    int result = start->function.c11(start->argument);
    NP_TELL(thread_ends, start->self.number, start->self.hash);
    np_log(NP_THREAD_END, start->self.number, 0, 0, 0, 0, 0);
    return result;
}

int clone(int (*function)(void *), void *stack, int flags, void *argument, ...) {
    va_list more;
    va_start(more, argument);
    void *parent_tid = va_arg(more, void *), *tls = va_arg(more, void *), *child_tid = va_arg(more, void *);
    va_end(more);
    NP_REAL(int, "clone", int (*)(void *), void *, int, void *, ...);
    bool thread = stack && (flags & CLONE_VM) && (flags & CLONE_THREAD) && np_active() && np_self.known;
    if (!thread) return real(function, stack, flags, argument, parent_tid, tls, child_tid);
    np_log_open();
    /* The package lies at the top of the new stack, which lives as long as the thread. */
    uintptr_t top = ((uintptr_t)stack - sizeof(struct start)) & ~(uintptr_t)63;
    struct start *start = (struct start *)top;
    memset(start, 0, sizeof *start);
    start->function.c11 = function;
    start->argument = argument;
    name_child(start);
    int tid = real(run_clone, start, flags, start, parent_tid, tls, child_tid);
    if (tid < 0) unname_child();
    return tid;
}
