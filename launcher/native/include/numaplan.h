/* numaplan for programs: memory that moves to the node of the thread that touches it next.
 *
 *     #include <numaplan.h>
 *     numaplan_next_touch(field, bytes);   // before a phase in which other threads use it
 *
 * Works where the program was started by nlaunch; elsewhere the calls do nothing, return -1 and set errno to ENOSYS.
 * Nothing needs to be linked. Find the folder of this file with:
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
