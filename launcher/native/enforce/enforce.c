/* The plan against what the preload library sees: each thread and each block looked up when it is born. */
#include "enforce.h"
#include "nexttouch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct placed { /* where a planned region is in this process, by its number in the plan */
    _Atomic uintptr_t address;
    size_t bytes;
};

struct living { /* a planned thread of this process that has not ended, by its number in the plan */
    _Atomic pid_t tid;
    uint32_t thread;
};

static struct nf_form form;
static bool loaded, refused, threads_here, memory_here, next_touch_here;
static _Atomic int others; /* threads beside the main one that live or are being made */
static struct placed *placed;
static struct living *living;

/* No process of the plan hashes to 0; one for which the control file had no room is in no plan. */
static uint64_t process_hash(void) { return np_process() ? np_process()->hash : 0; }

/* What the plan says of this process. */
static void find_process(void) {
    threads_here = memory_here = next_touch_here = false;
    for (uint32_t i = 0; i < form.header->threads && !threads_here; i++)
        threads_here = form.threads[i].path && form.threads[i].process == process_hash();
    for (uint32_t i = 0; i < form.header->regions; i++) {
        if (form.regions[i].process != process_hash()) continue;
        memory_here = true;
        next_touch_here = next_touch_here || form.regions[i].policy == NF_NEXT_TOUCH;
    }
}

void np_enforce_start(void) {
    const char *path = getenv("NUMAPLAN_PLAN");
    if (!path) return;
    loaded = nf_load(path, &form);
    refused = !loaded;
    if (refused) {
        np_log(NP_BAD_FORM, 0, 0, 0, 0, 0, 0);
        return;
    }
    placed = calloc((size_t)form.header->regions + 1, sizeof *placed);
    living = calloc((size_t)form.header->threads + 1, sizeof *living);
    loaded = placed && living;
    if (!loaded) return;
    find_process();
    /* A child began with the mask that we gave the thread that made it. */
    const struct nf_thread *any = np_process_entry() ? nf_find_thread(&form, 0, 0) : NULL;
    nf_affinity_start(any ? &form.cpus[any->first_cpu] : NULL, any ? any->cpus : 0);
}

bool np_enforce_wants_regions(void) { return loaded && memory_here; }

bool np_enforce_logs(void) { return refused || (loaded && (threads_here || memory_here)); }

/* ---- threads ---- */

static void watch(const struct nf_thread *plan, uint32_t thread) {
    struct living *entry = &living[plan - form.threads];
    entry->thread = thread;
    atomic_store(&entry->tid, gettid());
}

/* What a thread gets that the plan does not name: what its process, or else any process, says of such. */
static const struct nf_thread *unplanned(void) {
    const struct nf_thread *here = nf_find_thread(&form, process_hash(), 0);
    return here ? here : nf_find_thread(&form, 0, 0);
}

void np_enforce_thread(uint32_t number, uint64_t path, uintptr_t stack, size_t stack_bytes) {
    if (!loaded) return;
    int saved = errno;
    const struct nf_thread *plan = nf_find_thread(&form, process_hash(), path);
    const struct nf_thread *bind = plan ? plan : unplanned();
    if (plan) watch(plan, number); /* before it is bound: from here on another thread's wish does not move it */
    int error = bind ? nf_bind(&form.cpus[bind->first_cpu], bind->cpus, plan != NULL) : 0;
    bool stack_too = plan && plan->node >= 0 && stack;
    if (stack_too && number != 0) nf_place_stack(stack, stack_bytes, plan->node);
    if (stack_too && number == 0 && form.header->nodes > 1) nf_move_stack(stack + stack_bytes, plan->node);
    nf_log_affinity(number, path, error, plan != NULL, false, 0);
    errno = saved;
}

void np_enforce_thread_end(uint32_t number, uint64_t path) {
    if (loaded && number != 0) atomic_fetch_sub(&others, 1);
    const struct nf_thread *plan = loaded ? nf_find_thread(&form, process_hash(), path) : NULL;
    if (!plan) return;
    nf_log_affinity(number, plan->path, 0, true, true, 0);
    atomic_store(&living[plan - form.threads].tid, 0);
}

bool np_enforce_has(pid_t tid) {
    for (uint32_t i = 0; loaded && threads_here && i < form.header->threads; i++)
        if (atomic_load_explicit(&living[i].tid, memory_order_relaxed) == tid) return true;
    return false;
}

/* ---- memory ---- */

static void place(const struct nf_region *region, uintptr_t address, size_t bytes) {
    uint64_t number = (uint64_t)(region - form.regions);
    int error = nf_place(&form, region, address, bytes);
    np_log(NP_APPLIED_REGION, np_thread_number(), (uint32_t)error, number, address, bytes, 0);
    placed[number].bytes = bytes;
    atomic_store(&placed[number].address, address);
}

/* A program that was alone makes its first thread: what it did alone is over, and others come to use its memory. */
void np_enforce_spawn(int change) {
    if (!loaded || atomic_fetch_add(&others, change) != 0 || change < 0 || !next_touch_here) return;
    int saved = errno;
    for (uint32_t i = 0; i < form.header->regions; i++) {
        uintptr_t address = form.regions[i].policy == NF_NEXT_TOUCH ? atomic_load(&placed[i].address) : 0;
        if (address) nt_mark_memory(address, placed[i].bytes, 0, 0);
    }
    errno = saved;
}

/* A block that came earlier or later than in the plan: the next of its size from the same place. */
static const struct nf_region *find_shifted(const struct nf_region *block) {
    uint32_t low = 0, high = form.header->regions;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct nf_region *at = &form.regions[middle];
        bool before = at->process < block->process || (at->process == block->process && at->thread < block->thread);
        if (before) low = middle + 1;
        else high = middle;
    }
    for (; low < form.header->regions; low++) {
        const struct nf_region *at = &form.regions[low];
        if (at->process != block->process || at->thread != block->thread) break;
        bool same = at->kind == block->kind && at->module == block->module && at->offset == block->offset;
        if (same && at->bytes == block->bytes && !atomic_load(&placed[low].address)) return at;
    }
    return NULL;
}

bool np_enforce_region(enum np_region kind, uintptr_t address, size_t bytes, uintptr_t site) {
    uint64_t module;
    uintptr_t bias;
    if (!np_enforce_wants_regions() || !np_self.known || kind == NP_ARENA) return false;
    if (!np_module_of(site, &module, &bias)) return false;
    struct nf_region block = {.process = process_hash(), .thread = np_self.hash, .module = module, .bytes = bytes};
    block.offset = site - bias;
    block.kind = (uint16_t)kind;
    const struct nf_region *region = nf_find_region(&form, block.process, block.thread, np_self.sequence);
    bool same = region && region->kind == block.kind && region->module == module && region->offset == block.offset;
    if (region && !same) np_self.shifted = true;
    if (!same) region = np_self.shifted ? find_shifted(&block) : NULL;
    if (region) place(region, address, bytes);
    return region != NULL;
}

void np_enforce_region_gone(uintptr_t address) {
    for (uint32_t i = 0; loaded && i < form.header->regions; i++) {
        uintptr_t expected = address;
        if (atomic_load_explicit(&placed[i].address, memory_order_relaxed) != address) continue;
        if (!atomic_compare_exchange_strong(&placed[i].address, &expected, 0)) continue;
        int saved = errno;
        np_enforce_leaving(address, placed[i].bytes);
        nf_verify(&form, &form.regions[i], address, placed[i].bytes);
        if (form.regions[i].kind == NF_HEAP) nf_unplace(address, placed[i].bytes);
        errno = saved;
        return;
    }
}

static bool same_build(const struct nf_region *region, const struct np_module *module) {
    uint64_t first = 0;
    size_t bytes = module->build_id_bytes;
    if (module->build_id) memcpy(&first, module->build_id, bytes < sizeof first ? bytes : sizeof first);
    return !region->build_id || region->build_id == first;
}

/* A plan names data; what lies elsewhere is not its to place, whatever it says of offset and size. */
static bool holds(const struct np_module *module, const struct nf_region *region) {
    uintptr_t start = module->bias + region->offset;
    return start >= module->start && start < module->end && region->bytes <= module->end - start;
}

void np_enforce_module(const struct np_module *module) {
    if (!np_enforce_wants_regions()) return;
    for (uint32_t i = 0; i < form.header->regions; i++) {
        const struct nf_region *region = &form.regions[i];
        if (region->kind != NF_STATIC || region->process != process_hash() || region->module != module->name_hash) continue;
        if (same_build(region, module) && holds(module, region)) place(region, module->bias + region->offset, region->bytes);
    }
}

/* ---- fork and end ---- */

/* A child is another process: what was placed and who lived there was its parent's. */
void np_enforce_fork(void) {
    if (!loaded) return;
    atomic_store(&others, 0);
    memset(placed, 0, ((size_t)form.header->regions + 1) * sizeof *placed);
    for (uint32_t i = 0; i < form.header->threads; i++)
        if (living[i].tid != gettid()) living[i].tid = 0;
    nf_verify_forked();
    find_process();
}

void np_enforce_end(void) {
    if (!loaded) return;
    for (uint32_t i = 0; i < form.header->threads; i++) {
        pid_t tid = atomic_exchange(&living[i].tid, 0);
        if (tid) nf_log_affinity(living[i].thread, form.threads[i].path, 0, true, true, tid);
    }
    for (uint32_t i = 0; i < form.header->regions; i++) {
        uintptr_t address = atomic_exchange(&placed[i].address, 0);
        if (!address) continue;
        np_enforce_leaving(address, placed[i].bytes); /* the kernel does not tell where pages are that cannot be accessed */
        nf_verify(&form, &form.regions[i], address, placed[i].bytes);
    }
    uint64_t marked = atomic_load(&nt_counts.marked);
    if (marked)
        np_log(NP_NEXT_TOUCHED, np_thread_number(), 0, marked, atomic_load(&nt_counts.touches),
               atomic_load(&nt_counts.moved), atomic_load(&nt_counts.stayed));
}
