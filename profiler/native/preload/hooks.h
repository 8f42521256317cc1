/* What a library does with the events seen here. This folder only sees and names; who is linked with it defines `np_hooks`:
 * in preload.so ../recorder, which logs everything.
 *
 * A constant that is linked, and not a call at start, because there is no start that is early enough: the first block may
 * be made before any constructor runs. Hooks are called inside malloc, in signal handlers and in the child of a fork:
 * they do not allocate, do not write to the program's descriptors, and keep errno. One that is NULL is not called.
 */
#ifndef NUMAPLAN_HOOKS_H
#define NUMAPLAN_HOOKS_H

#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum np_region { NP_HEAP = 1, NP_MMAP, NP_FILE, NP_ARENA /* memory that malloc cuts up */ };

struct np_module { /* a module that was loaded */
    const char *path;
    uint64_t name_hash; /* of the path's last part */
    uintptr_t bias, start, end; /* start to end: what can be written of it, 0 to 0: nothing */
    const unsigned char *build_id;
    size_t build_id_bytes;
    const ElfW(Phdr) *segments;
    int segment_count;
    bool executable;
    uint64_t not_before_ns; /* it was not there at this time */
};

enum { NP_KEPT = 1024 };

struct np_exec { /* what exec is given */
    const char *path;
    char **argv, **envp;
    int fit; /* enum np_fit, once it was looked up */
    bool spawns; /* another process starts it, which is not there yet */
    unsigned char kept[NP_KEPT]; /* from exec_leaves to exec_over */
};

struct np_hooks {
    const char *library; /* the name of its file in LD_PRELOAD */

    /* The process; start and forked set np_wanted. */
    void (*start)(void);
    void (*forked)(void); /* in the child, whose main thread was born before */
    void (*end)(void);
    /* The calling thread is about to restrict the process's system calls: from now on no hook makes one (sandbox.c). */
    void (*sandbox_coming)(void);

    /* Threads, by number in the process and hash of the creation path. */
    void (*thread_coming)(int change); /* 1: a thread is about to be made, -1: it was not */
    /* In its creator, while it has not run yet, if it has not; true: it is bound. */
    bool (*thread_made)(uint32_t number, uint64_t path, pthread_t thread);
    /* In the new thread, before its function; bound: what thread_made said. */
    void (*thread_born)(uint32_t number, uint64_t path, uintptr_t stack, size_t stack_bytes, bool bound);
    void (*thread_ends)(uint32_t number, uint64_t path);

    /* Blocks and mappings of at least NP_LARGE bytes. */
    /* True: watch it, and report when it goes. The ends of mappings are always reported. */
    bool (*region_made)(enum np_region kind, uintptr_t address, size_t bytes, uintptr_t site, uint32_t sequence);
    void (*region_gone)(enum np_region kind, uintptr_t address, size_t bytes);

    /* Memory of any size. */
    void (*freeing)(void *block); /* about to be freed or resized, if it is watched or all are (np_live_watch_all) */
    void (*leaving)(uintptr_t address, size_t bytes); /* about to be unmapped, moved or mapped anew */

    void (*module_loaded)(const struct np_module *module);
    void (*module_gone)(uintptr_t bias);

    /* Exec, maybe in the child of a vfork, in its parent's memory: only the stack is written. */
    size_t (*exec_room)(struct np_exec *call); /* bytes that exec_change needs; 0: exec is left as it is */
    void (*exec_change)(struct np_exec *call, void *room);
    /* Last, whether or not it was changed; true: the calling thread is as what is started is to find itself ... */
    bool (*exec_leaves)(struct np_exec *call);
    void (*exec_over)(struct np_exec *call); /* ... and then, if it is still here, as before again */

    /* Calls by syscall(); the first may answer one itself. */
    bool (*call)(long number, const long arguments[6], long *result);
    void (*called)(long number, const long arguments[6], long result);
};

extern const struct np_hooks np_hooks;

struct np_wanted {
    uint64_t log_bytes; /* the most that the log may grow to, 0: no log */
    bool regions; /* regions and modules are looked at */
};
extern struct np_wanted np_wanted;

#define NP_TELL(hook, ...)                             \
    do {                                               \
        if (np_hooks.hook) np_hooks.hook(__VA_ARGS__); \
    } while (0)

#pragma GCC visibility pop
#endif
