/* Who the calling thread is, and the main thread, which nobody makes. */
#include "preload.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

extern char **environ;

__thread struct np_thread np_self;
static _Atomic uint32_t made; /* threads of this process, without the main one */
static size_t default_stack;

uint32_t np_thread_number(void) { return np_self.known ? np_self.number : NP_NO_THREAD; }

/* Where libc keeps it is its secret, but the clock of a thread names it. */
pid_t np_tid_of(pthread_t thread) {
    clockid_t clock;
    return pthread_getcpuclockid(thread, &clock) ? 0 : (pid_t)(~(unsigned)clock >> 3);
}

pid_t np_tid(void) { return np_tid_of(pthread_self()); }

uint32_t np_new_thread(void) { return atomic_fetch_add(&made, 1) + 1; }

size_t np_default_stack(void) { return default_stack; }

struct stack {
    uintptr_t inside, start;
    uintptr_t below; /* end of the mapping below it */
    size_t bytes;
};

static bool find_stack(const struct np_mapping *mapping, void *context) {
    struct stack *stack = context;
    if (mapping->end <= stack->inside) {
        stack->below = mapping->end;
        return true;
    }
    struct rlimit limit;
    if (mapping->start > stack->inside || getrlimit(RLIMIT_STACK, &limit)) return false;
    stack->bytes = mapping->end - stack->below;
    if (limit.rlim_cur < stack->bytes) stack->bytes = limit.rlim_cur;
    stack->start = mapping->end - stack->bytes;
    return false;
}

/* As far as it may grow. Not by pthread_getattr_np, which reads the same file: see maps.c. */
static void main_stack(uintptr_t *start, size_t *bytes) {
    struct stack stack = {.inside = (uintptr_t)environ};
    np_maps(find_stack, &stack);
    *start = stack.start;
    *bytes = stack.bytes;
}

/* The calling thread is this process's main thread: at start, or in the child of a fork (whose birth the control
 * file tells: it may exec at once, and then needs no log).
 */
void np_threads_start(bool forked) {
    static uintptr_t stack;
    static size_t bytes;
    static bool asked;
    if (!asked) {
        pthread_attr_t attributes;
        if (pthread_getattr_default_np(&attributes) == 0) {
            pthread_attr_getstacksize(&attributes, &default_stack);
            pthread_attr_destroy(&attributes);
        }
        main_stack(&stack, &bytes);
        asked = true;
    }
    np_self = (struct np_thread){.known = true, .hash = np_hash(NP_HASH_START, "0", 1)};
    np_self.stack_low = stack;
    np_self.stack_high = stack + bytes;
    atomic_store(&made, 0);
    if (!forked)
        np_log(NP_THREAD_START, 0, (uint32_t)gettid(), (uint64_t)NP_NO_THREAD << 32, (uint64_t)pthread_self(), stack,
               bytes);
    NP_TELL(thread_born, 0, np_self.hash, stack, bytes, false);
}
