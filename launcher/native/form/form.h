/* The plan in compact form, written by launcher/compact.py: read by the preload library and by the tracer. */
#ifndef NUMAPLAN_FORM_H
#define NUMAPLAN_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

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

/* Every count and index is checked once, here: nothing later can leave the form. */
bool nf_check(const void *memory, size_t bytes, struct nf_form *form);
/* FNV-1a: how the form knows processes, creation paths and modules by name. */
uint64_t nf_hash(const char *name);
bool nf_load(const char *path, struct nf_form *form);
const struct nf_thread *nf_find_thread(const struct nf_form *form, uint64_t process, uint64_t path);
const struct nf_region *nf_find_region(const struct nf_form *form, uint64_t process, uint64_t thread, uint32_t sequence);

#pragma GCC visibility pop
#endif
