/* numaplan for programs: memory that moves to the node of the thread that touches it next, and marks around the work
 * that a recording is about.
 *
 *     #include <numaplan.h>
 *     numaplan_next_touch(field, bytes);   // before a phase in which other threads use it
 *
 *     numaplan_begin();                    // nprof record --marked: what is recorded begins here
 *     work();
 *     numaplan_end();                      // and ends here
 *
 * The first works where the program was started by nlaunch, marks under nprof record; elsewhere the calls do nothing,
 * return -1 and set errno to ENOSYS. Nothing needs to be linked. Find the folder of this file with:
 *
 *     python -c "from numaplan.launcher import include_folder; print(include_folder())"
 */
#ifndef NUMAPLAN_H
#define NUMAPLAN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum numaplan_how {
    NUMAPLAN_AUTO = 0, /* exact where there are several nodes, else the kernel; nothing on a machine of one node */
    NUMAPLAN_USER = 1, /* each page is made inaccessible, and moved when a thread stumbles over it */
    NUMAPLAN_KERNEL = 2 /* the kernel's NUMA balancing moves pages in its own time (Linux 5.12) */
};

#ifndef NUMAPLAN_BUILDING

#include <dlfcn.h>
#include <errno.h>

/* Every page of [address, address + bytes) moves to the node of the thread that touches it next. Pages that the range
 * holds only in part move too. 0, or -1 and errno: EINVAL: no such memory, or memory that cannot be marked (stacks,
 * huge pages of a pool); ENOMEM: too many ranges or mappings; ENOSYS: not started by nlaunch.
 *
 * granule: bytes that move together, a power of 2; 0: chosen by size, at most 2048 pieces.
 */
static inline int numaplan_next_touch_how(void *address, size_t bytes, size_t granule, enum numaplan_how how) {
    int (*call)(void *, size_t, size_t, int);
    *(void **)(&call) = dlsym((void *)0, "numaplan_mark_next_touch");
    if (call) return call(address, bytes, granule, (int)how);
    errno = ENOSYS;
    return -1;
}

static inline int numaplan_next_touch(void *address, size_t bytes) {
    return numaplan_next_touch_how(address, bytes, 0, NUMAPLAN_AUTO);
}

/* The work begins, and ends. Any thread may say so for the whole process, any number of times; between a first begin
 * and as many ends, `nprof record --marked` records. 0, or -1 and errno ENOSYS: not started by nprof. It is looked up
 * once in each source file; later calls without nprof cost a load and a branch.
 */
static inline int numaplan_say(const char *name, int (**kept)(void), char *known) {
    char ready = __atomic_load_n(known, __ATOMIC_ACQUIRE);
    int (*call)(void) = __atomic_load_n(kept, __ATOMIC_RELAXED);
    if (!ready) {
        *(void **)(&call) = dlsym((void *)0, name);
        __atomic_store_n(kept, call, __ATOMIC_RELAXED);
        __atomic_store_n(known, 1, __ATOMIC_RELEASE);
    }
    if (call) return call();
    errno = ENOSYS;
    return -1;
}

static inline int numaplan_begin(void) {
    static int (*call)(void);
    static char known;
    return numaplan_say("numaplan_mark_begin", &call, &known);
}

static inline int numaplan_end(void) {
    static int (*call)(void);
    static char known;
    return numaplan_say("numaplan_mark_end", &call, &known);
}

/* Forget the marks: pages stay where they are. */
static inline int numaplan_next_touch_clear(void *address, size_t bytes) {
    int (*call)(void *, size_t);
    *(void **)(&call) = dlsym((void *)0, "numaplan_clear_next_touch");
    if (call) return call(address, bytes);
    errno = ENOSYS;
    return -1;
}

#endif

#ifdef __cplusplus
}
#endif
#endif
