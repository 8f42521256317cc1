/* Who the calling thread is, and the main thread, which nobody makes. */
#include "preload.h"

#include <pthread.h>
#include <unistd.h>

__thread struct np_thread np_self;
static _Atomic uint32_t made; /* threads of this process, without the main one */
static size_t default_stack;

uint32_t np_thread_number(void) { return np_self.known ? np_self.number : NP_NO_THREAD; }

uint32_t np_new_thread(void) { return atomic_fetch_add(&made, 1) + 1; }

size_t np_default_stack(void) { return default_stack; }

static void main_stack(uintptr_t *start, size_t *bytes) {
    pthread_attr_t attributes;
    void *address = NULL;
    if (pthread_getattr_np(pthread_self(), &attributes)) return;
    if (pthread_attr_getstack(&attributes, &address, bytes) == 0) *start = (uintptr_t)address;
    pthread_attr_destroy(&attributes);
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
    atomic_store(&made, 0);
    if (!forked)
        np_log(NP_THREAD_START, 0, (uint32_t)gettid(), (uint64_t)NP_NO_THREAD << 32, (uint64_t)pthread_self(), stack,
               bytes);
    NP_TELL(thread_born, 0, np_self.hash, stack, bytes);
}
