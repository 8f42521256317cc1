/* What was sent, in a file that all of the process's threads have mapped: nothing is lost when it dies. */
#define _GNU_SOURCE
#include "messages.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { VERSION = 1, LEAST = 1 << 14, LOOKS = 256, PATH = 4096 };

struct entry {
    _Atomic uint64_t key; /* 1 << 63 | kind << 56 | peer << 32 | tid; 0: free */
    _Atomic uint64_t bytes, count;
};

struct table {
    char magic[8];
    uint32_t version, capacity; /* a power of two */
    uint32_t rank, ranks, pid, spare;
    _Atomic uint64_t dropped; /* messages for which there was no room */
    _Atomic uint64_t outside; /* messages to ranks that are not of MPI_COMM_WORLD */
    uint64_t more[2];
    struct entry entries[];
};
_Static_assert(sizeof(struct table) == 64, "the reader relies on it");

__thread int ms_depth;
static __thread uint32_t tid;
static struct table *_Atomic table;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static MPI_Comm world(void) {
#ifdef OPEN_MPI
    static _Atomic(void *) known;
    return ms_real(&known, "ompi_mpi_comm_world");
#else
    return MPI_COMM_WORLD;
#endif
}

/* Whether this is the MPI that the library was built for. */
static bool fits(void) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    __typeof__(&MPI_Get_library_version) version = REAL(MPI_Get_library_version);
    if (!version || version(text, &length)) return false;
#ifdef OPEN_MPI
    return strstr(text, "Open MPI") != NULL;
#else
    return strstr(text, "Open MPI") == NULL;
#endif
}

static struct table *map(int rank, int ranks) {
    const char *folder = getenv("NUMAPLAN_MESSAGES");
    char path[PATH];
    if (!folder || snprintf(path, sizeof path, "%s/%d.%d.messages", folder, rank, (int)getpid()) >= PATH) return NULL;
    uint32_t capacity = LEAST;
    while (capacity < (uint32_t)ranks * 8 && capacity < 1u << 24) capacity *= 2;
    size_t bytes = sizeof(struct table) + capacity * sizeof(struct entry);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return NULL;
    void *memory = MAP_FAILED;
    if (posix_fallocate(file, 0, (off_t)bytes) == 0) /* or a full disk would end the program */
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) {
        unlink(path);
        return NULL;
    }
    struct table *made = memory;
    *made = (struct table){.magic = "NUMAPLMS", .version = VERSION, .capacity = capacity};
    made->rank = (uint32_t)rank, made->ranks = (uint32_t)ranks, made->pid = (uint32_t)getpid();
    return made;
}

static void open_once(void) {
    int rank, ranks;
    MPI_Comm all = world();
    if (!fits() || REAL(MPI_Comm_rank)(all, &rank) || REAL(MPI_Comm_size)(all, &ranks)) return;
    atomic_store(&table, map(rank, ranks));
}

void ms_open(void) {
    int ready = 0, over = 0;
    ms_depth++;
    if (!REAL(MPI_Initialized)(&ready) && ready && !REAL(MPI_Finalized)(&over) && !over)
        pthread_once(&opened, open_once);
    ms_depth--;
}

bool ms_counts(void) {
    if (ms_depth) return false;
    if (!atomic_load_explicit(&table, memory_order_acquire)) ms_open();
    return atomic_load_explicit(&table, memory_order_relaxed) != NULL;
}

static struct entry *entry_of(struct table *here, uint64_t key) {
    uint32_t at = (uint32_t)(key * 0x9E3779B97F4A7C15ull >> 32);
    for (uint32_t look = 0; look < LOOKS; look++) {
        struct entry *entry = &here->entries[(at + look) & (here->capacity - 1)];
        uint64_t found = atomic_load_explicit(&entry->key, memory_order_relaxed);
        if (!found && atomic_compare_exchange_strong(&entry->key, &found, key)) return entry;
        if (found == key) return entry;
    }
    return NULL;
}

void ms_add(enum ms_kind kind, int peer, long long bytes, long long count) {
    struct table *here = atomic_load_explicit(&table, memory_order_relaxed);
    if (peer < 0) {
        atomic_fetch_add_explicit(&here->outside, (uint64_t)count, memory_order_relaxed);
        return;
    }
    if (!tid) tid = (uint32_t)syscall(SYS_gettid);
    struct entry *entry = entry_of(here, 1ull << 63 | (uint64_t)kind << 56 | (uint64_t)(uint32_t)peer << 32 | tid);
    if (!entry) {
        atomic_fetch_add_explicit(&here->dropped, (uint64_t)count, memory_order_relaxed);
        return;
    }
    atomic_fetch_add_explicit(&entry->bytes, (uint64_t)bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&entry->count, (uint64_t)count, memory_order_relaxed);
}

/* ---- the beginning ---- */

int MPI_Init(int *argc, char ***argv) {
    int result = INSIDE(REAL(MPI_Init)(argc, argv));
    if (!result) ms_open();
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int result = INSIDE(REAL(MPI_Init_thread)(argc, argv, required, provided));
    if (!result) ms_open();
    return result;
}
