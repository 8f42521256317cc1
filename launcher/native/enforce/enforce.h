/* What enforce.so does with a plan: bind threads at birth, place memory before it is touched, verify both. */
#ifndef NUMAPLAN_ENFORCE_H
#define NUMAPLAN_ENFORCE_H

#include "preload.h"

#include <sched.h>

#pragma GCC visibility push(hidden)

/* ---- form.c: the plan in compact form, written by launcher/compact.py; every count and index is checked once ---- */

struct nf_header {
    char magic[8]; /* NUMAPLPF */
    uint32_t version, threads, cpus, regions, runs, nodes;
    uint64_t bytes; /* of the whole file */
    uint64_t spare[3];
};
_Static_assert(sizeof(struct nf_header) == 64, "the writer relies on it");

struct nf_thread { /* ascending by process, path; path 0: threads that the plan does not name */
    uint64_t process, path;
    uint32_t first_cpu, cpus;
    int32_t node; /* -1: leave the stack alone */
    uint32_t spare;
};
_Static_assert(sizeof(struct nf_thread) == 32, "the writer relies on it");

enum nf_kind { NF_HEAP = 1, NF_MMAP, NF_FILE, NF_STATIC };
enum nf_policy { NF_BIND = 1, NF_PREFERRED, NF_INTERLEAVE, NF_NEXT_TOUCH };

struct nf_region { /* ascending by process, thread, sequence */
    uint64_t process, thread; /* hashes; thread 0 for static data */
    uint64_t module, offset;  /* hash of the basename; call site, or address of static data in the file */
    uint64_t bytes, build_id; /* build_id: first 8 bytes, 0: any */
    uint32_t first_run, runs;
    uint32_t sequence;
    uint16_t kind, policy;
};
_Static_assert(sizeof(struct nf_region) == 64, "the writer relies on it");

struct nf_run {
    uint64_t offset, bytes;
    uint32_t node, spare;
};
_Static_assert(sizeof(struct nf_run) == 24, "the writer relies on it");

enum { NF_MAX_NODE = 1023, NF_MAX_CPU = 8191, NF_MASK = (NF_MAX_CPU + 1) / 8 };

struct nf_form {
    const struct nf_header *header;
    const struct nf_thread *threads;
    const struct nf_region *regions;
    const struct nf_run *runs;
    const uint32_t *cpus;
};

bool nf_check(const void *memory, size_t bytes, struct nf_form *form);
bool nf_load(const char *path, struct nf_form *form);
const struct nf_thread *nf_find_thread(const struct nf_form *form, uint64_t process, uint64_t path);
const struct nf_region *nf_find_region(const struct nf_form *form, uint64_t process, uint64_t thread, uint32_t sequence);

/* ---- records ---- */

enum {
    NP_APPLIED_THREAD = NP_APPLIED, /* a: errno of binding, b: hash of the path, c: 1 planned, d: 0 at birth, 1 later; text: its cpus, a bit each */
    NP_APPLIED_REGION,              /* a: errno, b: number in the plan, c: address, d: bytes */
    NP_REGION_PAGES,                /* a: node of the plan << 16 | node found (0xffff: never touched), b: number, c: bytes */
    NP_BAD_FORM,
};

/* ---- place.c ---- */

int nf_place(const struct nf_form *form, const struct nf_region *region, uintptr_t address, size_t bytes);
void nf_place_stack(uintptr_t address, size_t bytes, int node);
void nf_unplace(uintptr_t address, size_t bytes);
void nf_verify(const struct nf_form *form, const struct nf_region *region, uintptr_t address, size_t bytes);

/* ---- affinity.c ---- */

/* cpus: what the process would have without us; none: what it has now. */
void nf_affinity_start(const uint32_t *cpus, uint32_t count);
/* Bind the calling thread; returns errno. Only a planned thread is told another mask. */
int nf_bind(const uint32_t *cpus, uint32_t count, bool planned);
void nf_log_affinity(uint32_t thread, uint64_t path, int error, bool planned, bool later, pid_t tid);

#pragma GCC visibility pop
#endif
