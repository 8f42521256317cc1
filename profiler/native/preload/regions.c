/* Large blocks: heap blocks and mappings of at least NP_LARGE bytes, named by call site, thread and sequence.
 *
 * A small block costs one compare; a small free two, and a look into a filter where it lies among large blocks.
 */
#include "preload.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *first_malloc(size_t bytes);
static void *(*next_malloc)(size_t) = first_malloc; /* the real one, once it is known */
static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_aligned)(size_t, size_t);
static void *(*real_memalign)(size_t, size_t);
static int (*real_posix_memalign)(void **, size_t, size_t);
static void *(*real_valloc)(size_t);
static void *(*real_pvalloc)(size_t);
static void (*real_free)(void *);
static void *(*real_mmap)(void *, size_t, int, int, int, off_t);
static int (*real_munmap)(void *, size_t);
static void *(*real_mremap)(void *, size_t, size_t, int, ...);

/* What is allocated while dlsym looks for the real functions (by dlsym itself, in one thread). */
static _Alignas(16) char early[8192];
static size_t early_used;
static bool resolving;

static bool is_early(const void *block) {
    return (const char *)block >= early && (const char *)block < early + sizeof early;
}

static void *early_block(size_t bytes) {
    size_t size = (bytes + 31) & ~(size_t)15;
    if (bytes > sizeof early || early_used + size > sizeof early) return NULL;
    char *block = early + early_used + 16;
    memcpy(block - 16, &bytes, sizeof bytes);
    early_used += size;
    return block;
}

static NP_COLD void resolve(void) {
    if (resolving) return;
    resolving = true;
    *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&real_aligned = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)&real_memalign = dlsym(RTLD_NEXT, "memalign");
    *(void **)&real_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    *(void **)&real_valloc = dlsym(RTLD_NEXT, "valloc");
    *(void **)&real_pvalloc = dlsym(RTLD_NEXT, "pvalloc");
    *(void **)&real_free = dlsym(RTLD_NEXT, "free");
    *(void **)&real_mmap = dlsym(RTLD_NEXT, "mmap");
    *(void **)&real_munmap = dlsym(RTLD_NEXT, "munmap");
    *(void **)&real_mremap = dlsym(RTLD_NEXT, "mremap");
    *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc"); /* last: its presence says that all are there */
    if (real_malloc) next_malloc = real_malloc;
    np_live_none();
    if (early_used) np_live_span((uintptr_t)early, (uintptr_t)early + sizeof early);
    resolving = false;
}

enum { FRAME_WORDS = 16 };

#define VAST ((size_t)1 << 39) /* bytes, of which programs use little where they reserve so much */

#define READY() (__builtin_expect(real_malloc != NULL, 1) || (resolve(), real_malloc != NULL))

/* The library is not started by a mapping: it may be an allocator's, which holds its locks, and to start takes memory. */
static bool wanted(enum np_region kind) { return (kind == NP_HEAP ? np_active() : np_awake()) && np_wanted.regions; }

/* A malloc replacement maps through us what libc's malloc maps by itself. */
static bool from_allocator(uintptr_t site) {
    uint64_t name, allocator_name;
    uintptr_t bias, allocator;
    return np_module_of((uintptr_t)real_malloc, &allocator_name, &allocator) && np_module_of(site, &name, &bias) &&
           bias == allocator && name == allocator_name;
}

/* operator new calls malloc, and says nothing of who wants the block: its own caller does, a few words up. */
static uintptr_t through_new(struct np_call call) {
    uint64_t name, other;
    uintptr_t bias;
    if (!np_module_of(call.site, &name, &bias)) return call.site;
    bool is_new = name == np_hash_of("libstdc++.so.6") || name == np_hash_of("libc++.so.1") ||
                  name == np_hash_of("libc++abi.so.1");
    for (int i = 0; is_new && i < FRAME_WORDS; i++)
        if (np_module_of(call.frame[i], &other, &bias) && other != name) return call.frame[i];
    return call.site;
}

static NP_COLD void region_made(enum np_region kind, uintptr_t address, size_t bytes, struct np_call call) {
    if (!address || !wanted(kind)) return;
    int saved = errno;
    np_modules_scan();
    if (kind != NP_HEAP && from_allocator(call.site)) kind = NP_ARENA;
    uintptr_t site = through_new(call);
    uint32_t sequence = np_self.known && kind != NP_ARENA ? ++np_self.sequence : 0;
    if (np_hooks.region_made && np_hooks.region_made(kind, address, bytes, site, sequence)) np_live_add(address);
    errno = saved;
}

void np_mapping_made(uintptr_t address, size_t bytes, struct np_call call) {
    region_made(NP_MMAP, address, bytes, call);
}

void np_mapping_gone(uintptr_t address, size_t bytes) {
    if (bytes < NP_LARGE || !wanted(NP_MMAP)) return;
    int saved = errno;
    NP_TELL(region_gone, NP_MMAP, address, bytes);
    errno = saved;
}

static inline void *made(void *block, size_t bytes, struct np_call call) {
    if (__builtin_expect(bytes >= NP_LARGE, 0)) region_made(NP_HEAP, (uintptr_t)block, bytes, call);
    return block;
}

/* A block that may be watched is about to be freed or resized; true: it was watched. */
static NP_COLD bool leaves(void *block) {
    bool watched = np_live_remove((uintptr_t)block);
    if (watched) NP_TELL(region_gone, NP_HEAP, (uintptr_t)block, 0);
    NP_TELL(freeing, block);
    return watched;
}

static NP_COLD void *first_malloc(size_t bytes) { return READY() ? real_malloc(bytes) : early_block(bytes); }

NP_HOT void *malloc(size_t bytes) {
    if (__builtin_expect(bytes < NP_LARGE, 1)) return next_malloc(bytes);
    if (!READY()) return early_block(bytes);
    return made(real_malloc(bytes), bytes, NP_CALLER);
}

void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return errno = ENOMEM, NULL;
    if (!READY()) return early_block(bytes); /* never used before, so zero */
    return made(real_calloc(count, size), bytes, NP_CALLER);
}

static NP_COLD void free_rare(void *block) {
    if (is_early(block) || !READY()) return;
    leaves(block);
    real_free(block);
}

static NP_HOT __attribute__((noinline)) void free_near(void *block) {
    if (__builtin_expect(real_free && !np_live_maybe((uintptr_t)block) && !is_early(block), 1)) real_free(block);
    else free_rare(block);
}

/* Until the real one is known, all is near. */
NP_HOT void free(void *block) {
    if (__builtin_expect(!np_live_near((uintptr_t)block), 1)) real_free(block);
    else free_near(block);
}

static NP_COLD void *realloc_early(void *block, size_t bytes) {
    size_t old;
    memcpy(&old, (char *)block - 16, sizeof old);
    void *moved = malloc(bytes);
    if (moved) memcpy(moved, block, old < bytes ? old : bytes);
    return moved;
}

static void *reallocate(void *block, size_t bytes, struct np_call call) {
    if (block && is_early(block)) return realloc_early(block, bytes);
    if (!READY()) return early_block(bytes);
    /* Gone before it really is: another thread may get its address at once. */
    size_t old = block && np_live_maybe((uintptr_t)block) && leaves(block) ? malloc_usable_size(block) : 0;
    void *moved = real_realloc(block, bytes);
    if (!moved && bytes && old) made(block, old, call);
    return made(moved, bytes, call);
}

void *realloc(void *block, size_t bytes) { return reallocate(block, bytes, NP_CALLER); }

void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return errno = ENOMEM, NULL;
    return reallocate(block, bytes, NP_CALLER);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return READY() && real_aligned ? made(real_aligned(alignment, bytes), bytes, NP_CALLER) : NULL;
}

void *memalign(size_t alignment, size_t bytes) {
    return READY() && real_memalign ? made(real_memalign(alignment, bytes), bytes, NP_CALLER) : NULL;
}

int posix_memalign(void **block, size_t alignment, size_t bytes) {
    if (!READY() || !real_posix_memalign) return ENOMEM;
    int error = real_posix_memalign(block, alignment, bytes);
    if (!error) made(*block, bytes, NP_CALLER);
    return error;
}

void *valloc(size_t bytes) { return READY() && real_valloc ? made(real_valloc(bytes), bytes, NP_CALLER) : NULL; }

void *pvalloc(size_t bytes) { return READY() && real_pvalloc ? made(real_pvalloc(bytes), bytes, NP_CALLER) : NULL; }

/* Some emulators keep a note of each page, also where it is only reserved. Of so much no more than this is reserved then
 * (NUMAPLAN_MOST_RESERVED, bytes), which most programs fill from the start. 0: as much as is asked for.
 */
static size_t most_reserved(size_t bytes) {
    const char *most = bytes < VAST ? NULL : np_env("NUMAPLAN_MOST_RESERVED");
    return most ? (size_t)strtoull(most, NULL, 10) : 0;
}

/* What was reserved in part. A range that is not here was made, and is given back, as it is. */
static struct vast {
    _Atomic uintptr_t start;
    size_t asked, kept;
} vast[8];

/* Also what follows is then free for others: the region is what there is. */
static void *reserve_part(void *hint, size_t *bytes, size_t most, int flags) {
    void *memory = real_mmap(hint, most, PROT_NONE, flags, -1, 0);
    for (size_t i = 0; memory != MAP_FAILED && i < sizeof vast / sizeof *vast; i++) {
        uintptr_t none = 0;
        if (!atomic_compare_exchange_strong(&vast[i].start, &none, (uintptr_t)memory)) continue;
        vast[i].asked = *bytes, vast[i].kept = most;
        *bytes = most;
        return memory;
    }
    if (memory != MAP_FAILED) real_munmap(memory, most);
    return real_mmap(hint, *bytes, PROT_NONE, flags, -1, 0);
}

/* How much there is of a range that is given back. */
static size_t given_back(const void *memory, size_t bytes) {
    for (size_t i = 0; bytes >= VAST && i < sizeof vast / sizeof *vast; i++) {
        uintptr_t start = (uintptr_t)memory;
        if (bytes == vast[i].asked && atomic_compare_exchange_strong(&vast[i].start, &start, 0)) return vast[i].kept;
    }
    return bytes;
}

static enum np_region kind_of(int flags) { return flags & MAP_ANONYMOUS ? NP_MMAP : NP_FILE; }

static void *map(void *hint, size_t bytes, int protection, int flags, int file, off_t offset, struct np_call call) {
    if (!READY()) return errno = ENOMEM, MAP_FAILED;
    if (flags & MAP_FIXED) NP_TELL(leaving, (uintptr_t)hint, bytes);
    bool reserves = protection == PROT_NONE && flags & MAP_ANONYMOUS && !(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE));
    size_t most = reserves ? most_reserved(bytes) : 0;
    void *memory =
        most ? reserve_part(hint, &bytes, most, flags) : real_mmap(hint, bytes, protection, flags, file, offset);
    if (bytes < NP_LARGE || memory == MAP_FAILED) return memory;
    np_self.reserves = protection == PROT_NONE;
    region_made(kind_of(flags), (uintptr_t)memory, bytes, call);
    np_self.reserves = false;
    return memory;
}

void *mmap(void *hint, size_t bytes, int protection, int flags, int file, off_t offset) {
    return map(hint, bytes, protection, flags, file, offset, NP_CALLER);
}

void *mmap64(void *hint, size_t bytes, int protection, int flags, int file, off64_t offset) {
    return map(hint, bytes, protection, flags, file, offset, NP_CALLER);
}

int munmap(void *memory, size_t bytes) {
    if (!READY()) return errno = EINVAL, -1;
    bytes = given_back(memory, bytes);
    np_mapping_gone((uintptr_t)memory, bytes);
    NP_TELL(leaving, (uintptr_t)memory, bytes);
    return real_munmap(memory, bytes);
}

void *mremap(void *memory, size_t old, size_t bytes, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *to = va_arg(more, void *);
    va_end(more);
    if (!READY()) return errno = EINVAL, MAP_FAILED;
    NP_TELL(leaving, (uintptr_t)memory, old);
    if (flags & MREMAP_FIXED) NP_TELL(leaving, (uintptr_t)to, bytes);
    void *moved = real_mremap(memory, old, bytes, flags, to);
    if (moved == MAP_FAILED) return moved;
    np_mapping_gone((uintptr_t)memory, old);
    if (bytes >= NP_LARGE) region_made(NP_MMAP, (uintptr_t)moved, bytes, NP_CALLER);
    return moved;
}
