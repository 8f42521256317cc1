/* Shared memory of System V: what a process attaches is a mapping to it, made by this call as others are by mmap. */
#include "preload.h"

#include <sys/shm.h>

/* The kernel asks for no length where it is detached. Beyond these it is not told that one goes. */
static struct attached {
    _Atomic uintptr_t start;
    size_t bytes;
} attached[256];

enum { ATTACHED = sizeof attached / sizeof *attached };

/* 0: not to be had. */
static size_t bytes_of(int id) {
    struct shmid_ds facts;
    int saved = errno;
    size_t bytes = 0;
    if (np_enter()) {
        if (np_may_call() && !shmctl(id, IPC_STAT, &facts)) bytes = facts.shm_segsz;
        np_leave();
    }
    errno = saved;
    return bytes;
}

static void keep(uintptr_t start, size_t bytes) {
    for (unsigned i = 0; i < ATTACHED; i++) {
        uintptr_t none = 0;
        if (!atomic_compare_exchange_strong(&attached[i].start, &none, 1)) continue; /* 1: not to be found yet */
        attached[i].bytes = bytes;
        atomic_store(&attached[i].start, start);
        return;
    }
}

void *shmat(int id, const void *hint, int flags) {
    NP_REAL(void *, "shmat", int, const void *, int);
    struct np_call call = NP_CALLER;
    size_t bytes = np_wanted.regions ? bytes_of(id) : 0;
    if (flags & SHM_REMAP && bytes) NP_TELL(leaving, (uintptr_t)hint, bytes);
    void *memory = real(id, hint, flags);
    if (memory == (void *)-1 || bytes < NP_LARGE) return memory;
    keep((uintptr_t)memory, bytes);
    np_mapping_made((uintptr_t)memory, bytes, call);
    return memory;
}

int shmdt(const void *memory) {
    NP_REAL(int, "shmdt", const void *);
    for (unsigned i = 0; memory && i < ATTACHED; i++) {
        uintptr_t start = (uintptr_t)memory;
        size_t bytes = attached[i].bytes;
        if (!atomic_compare_exchange_strong(&attached[i].start, &start, 0)) continue;
        np_mapping_gone((uintptr_t)memory, bytes);
        NP_TELL(leaving, (uintptr_t)memory, bytes);
        break;
    }
    return real(memory);
}
