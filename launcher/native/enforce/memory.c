/* What the plan says of memory: applied to each block, mapping and module when it comes, and looked at when it goes. */
#include "enforce.h"
#include "next_touch.h"

#include <stdlib.h>
#include <string.h>

struct placed { /* where a planned region is in this process, by its number in the plan */
    _Atomic uintptr_t address;
    size_t bytes;
};

static struct placed *placed;
static uint32_t single; /* regions of the plan that are one block each; rules come after them */
static NP_THREAD bool shifted; /* this thread's blocks do not come in the plan's order */

bool nf_regions_open(void) {
    single = pt_first_rule(&nf_plan.table);
    placed = calloc((size_t)single + 1, sizeof *placed);
    return placed && nf_blocks_open(nf_plan.table.header->rules);
}

void nf_regions_forked(void) {
    memset(placed, 0, ((size_t)single + 1) * sizeof *placed);
    nf_blocks_forked(nf_plan.table.header->rules);
    nf_looks_forked();
    shifted = false;
}

static void place(const struct pt_region *region, uintptr_t address, size_t bytes) {
    uint64_t number = (uint64_t)(region - nf_plan.table.regions);
    int error = EPERM;
    if (np_enter()) {
        if (np_may_call()) error = nf_place(&nf_plan.table, region, address, bytes);
        np_leave();
    }
    np_log(NF_APPLIED_REGION, np_thread_number(), (uint32_t)error, number, address, bytes, 0);
    placed[number].bytes = bytes;
    atomic_store(&placed[number].address, address);
}

/* A block that came earlier or later than in the plan: the next of its size from the same place, else of any size where
 * the plan scales.
 */
static const struct pt_region *find_shifted(const struct pt_region *block) {
    uint32_t low = 0, high = single;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct pt_region *at = &nf_plan.table.regions[middle];
        bool before = at->process < block->process || (at->process == block->process && at->thread < block->thread);
        if (before) low = middle + 1;
        else high = middle;
    }
    const struct pt_region *scaled = NULL;
    for (; low < single; low++) {
        const struct pt_region *at = &nf_plan.table.regions[low];
        if (at->process != block->process || at->thread != block->thread) break;
        bool same = at->kind == block->kind && at->module == block->module && at->offset == block->offset;
        if (!same || atomic_load(&placed[low].address)) continue;
        if (at->bytes == block->bytes) return at;
        if (at->scales && !scaled) scaled = at;
    }
    return scaled;
}

/* True: placed, and to be reported when it goes. */
static bool place_by_rule(const struct pt_region *block, uintptr_t address) {
    const struct pt_region *rule = pt_find_rule(&nf_plan.table, block);
    uint32_t number = rule ? (uint32_t)(rule - nf_plan.table.regions) : 0;
    if (!rule || !nf_block_add(address, block->bytes, number)) return false;
    int error = EPERM;
    if (np_enter()) {
        if (np_may_call()) error = nf_place_block(&nf_plan.table, rule, address, block->bytes);
        np_leave();
    }
    nf_block_placed(number - single, number, block->bytes, error);
    return true;
}

bool nf_region_made(enum np_region kind, uintptr_t address, size_t bytes, uintptr_t site, uint32_t sequence) {
    uint64_t module;
    uintptr_t bias;
    if (!np_self.known || kind == NP_ARENA) return false;
    if (!np_module_of(site, &module, &bias)) return false;
    struct pt_region block = {.process = nf_process_hash(), .thread = np_self.hash, .module = module, .bytes = bytes};
    block.offset = site - bias;
    block.kind = (uint16_t)kind;
    const struct pt_region *region = pt_find_region(&nf_plan.table, block.process, block.thread, sequence);
    bool same = region && region->kind == block.kind && region->module == module && region->offset == block.offset;
    if (region && !same) shifted = true;
    bool ruled = !same && nf_plan.table.header->rules && place_by_rule(&block, address);
    /* Blocks of rules do not count: where there are some, nothing is said of when the others come. */
    if (!same) region = !ruled && (shifted || nf_plan.table.header->rules) ? find_shifted(&block) : NULL;
    if (region) place(region, address, bytes);
    if (region || ruled || (kind != NP_FILE && !np_self.reserves)) nf_count_memory(bytes, region || ruled);
    return region || ruled;
}

static void look_at(uint32_t number, uintptr_t address, size_t bytes) {
    if (!np_enter()) return;
    nt_leaving(address, bytes); /* the kernel does not tell where pages are that cannot be accessed */
    if (np_may_call()) nf_verify(&nf_plan.table, &nf_plan.table.regions[number], address, bytes);
    np_leave();
}

static void unplace(uint32_t number, uintptr_t address, size_t bytes) {
    if (nf_plan.table.regions[number].kind != PT_HEAP || !np_enter()) return;
    if (np_may_call()) nf_unplace(address, bytes);
    np_leave();
}

/* One that a rule has placed; false: it is none of these. */
static bool block_gone(uintptr_t address) {
    size_t bytes;
    uint32_t number;
    if (!nf_block_take(address, &bytes, &number)) return false;
    int saved = errno;
    if (nf_block_is_looked_at(number - single)) look_at(number, address, bytes);
    unplace(number, address, bytes);
    errno = saved;
    return true;
}

void nf_region_gone(enum np_region kind, uintptr_t address, size_t unmapped) {
    (void)unmapped; /* the whole of it, or a part from its start */
    if (kind != NP_HEAP && !np_live_remove(address)) return; /* not planned */
    if (!nf_plan.loaded || block_gone(address)) return;
    for (uint32_t i = 0; i < single; i++) {
        uintptr_t expected = address;
        if (atomic_load_explicit(&placed[i].address, memory_order_relaxed) != address) continue;
        if (!atomic_compare_exchange_strong(&placed[i].address, &expected, 0)) continue;
        int saved = errno;
        look_at(i, address, placed[i].bytes);
        unplace(i, address, placed[i].bytes);
        errno = saved;
        return;
    }
}

static bool same_build(const struct pt_region *region, const struct np_module *module) {
    uint64_t first = 0;
    size_t bytes = module->build_id_bytes;
    if (module->build_id) memcpy(&first, module->build_id, bytes < sizeof first ? bytes : sizeof first);
    return !region->build_id || region->build_id == first;
}

/* A plan names data; what lies elsewhere is not its to place, whatever it says of offset and size. */
static bool holds(const struct np_module *module, const struct pt_region *region) {
    uintptr_t start = module->bias + region->offset;
    return start >= module->start && start < module->end && region->bytes <= module->end - start;
}

void nf_module_loaded(const struct np_module *module) {
    size_t planned = 0;
    for (uint32_t i = 0; i < single; i++) {
        const struct pt_region *region = &nf_plan.table.regions[i];
        if (region->kind != PT_STATIC || region->process != nf_process_hash() || region->module != module->name_hash)
            continue;
        if (!same_build(region, module) || !holds(module, region)) continue;
        place(region, module->bias + region->offset, region->bytes);
        planned += region->bytes;
    }
    /* Of libraries only what is planned: hardly anything else is the program's work. */
    size_t all = module->executable ? module->end - module->start : planned;
    if (planned) nf_count_memory(planned, true);
    if (all > planned) nf_count_memory(all - planned, false);
}

/* The program was alone and is about to make its first thread: what it did alone is over, and others come to use its
 * memory. */
void nf_regions_shared(void) {
    if (!nf_plan.next_touch_here || !np_may_call()) return;
    int saved = errno;
    for (uint32_t i = 0; i < single; i++) {
        uintptr_t address = nf_plan.table.regions[i].policy == PT_NEXT_TOUCH ? atomic_load(&placed[i].address) : 0;
        if (address) nt_mark_memory(address, placed[i].bytes, 0, 0);
    }
    errno = saved;
}

void nf_regions_look(void) {
    for (uint32_t i = 0; i < single; i++) {
        uintptr_t address = atomic_load(&placed[i].address);
        if (address) look_at(i, address, placed[i].bytes);
    }
}

void nf_regions_end(void) {
    for (uint32_t i = 0; i < single; i++) {
        uintptr_t address = atomic_exchange(&placed[i].address, 0);
        if (address) look_at(i, address, placed[i].bytes);
    }
    uintptr_t address;
    size_t bytes;
    uint32_t number;
    while (nf_block_take_any(&address, &bytes, &number))
        if (nf_block_is_looked_at(number - single)) look_at(number, address, bytes);
    nf_blocks_end(nf_plan.table.header->rules, single);
}
