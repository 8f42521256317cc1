/* Memory: each run of a region to its node, and where the pages are. */
#include "enforce.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LOOKS = 16, BATCH = 1024, NODES = 64, MAX_QUERIED = 1 << 18, OF_A_RULE = 1 << 8 /* of a block */, GLANCES = 4 };
enum { UNTOUCHED = 0xffff };

/* Asked for once: it is needed many times for each page that is looked at. */
static size_t page_bytes(void) {
    static _Atomic size_t known;
    size_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (!bytes) atomic_store_explicit(&known, bytes = (size_t)sysconf(_SC_PAGESIZE), memory_order_relaxed);
    return bytes;
}

/* A page belongs to the run that its first planned byte is in. */
static uintptr_t page_of(uintptr_t address) { return address & ~(uintptr_t)(page_bytes() - 1); }

static uintptr_t page_after(uintptr_t address) { return page_of(address + page_bytes() - 1); }

/* The pages that are a region's. Blocks of the heap and static data share a page with what lies before and after them:
 * it is theirs who have most of it, so that two planned neighbours do not both claim it. Anything has one page.
 */
struct span {
    uintptr_t start, end;
};

static struct span span_of(const struct pt_region *region, uintptr_t address, size_t bytes) {
    struct span all = {page_of(address), page_after(address + bytes)};
    if (region->kind != PT_HEAP && region->kind != PT_STATIC) return all;
    struct span most = {page_of(address + page_bytes() / 2), page_of(address + bytes + page_bytes() / 2)};
    return most.start < most.end ? most : all;
}

static uintptr_t within(struct span span, uintptr_t page) {
    return page < span.start ? span.start : page > span.end ? span.end : page;
}

/* The pages of a run: borders between large ones do not cut huge pages. */
static struct span run_span(const struct pt_table *table, const struct pt_region *region, const struct pt_run *run,
                            uintptr_t address, size_t bytes) {
    struct span span = span_of(region, address, bytes);
    uint64_t from = pt_offset_in(table, region, run->offset, bytes);
    uint64_t to = pt_offset_in(table, region, run->offset + run->bytes, bytes);
    if (from >= bytes) return (struct span){span.end, span.end}; /* smaller today */
    uintptr_t start = from ? within(span, nf_border(address + from, bytes, region->runs)) : span.start;
    if (to >= bytes) return (struct span){start, span.end};
    return (struct span){start, within(span, nf_border(address + to, bytes, region->runs))};
}

static int place_runs(const struct pt_table *table, const struct pt_region *region, uintptr_t address, size_t bytes,
                      unsigned how) {
    int first_error = 0;
    if (region->policy == PT_BIND) how |= NF_STRICT;
    for (uint32_t i = 0; i < region->runs; i++) {
        const struct pt_run *run = &table->runs[region->first_run + i];
        struct span pages = run_span(table, region, run, address, bytes);
        int error = nf_set_node(pages.start, pages.end, run->node, how);
        if (error && !first_error) first_error = error;
    }
    return first_error;
}

static int place(const struct pt_table *table, const struct pt_region *region, uintptr_t address, size_t bytes,
                 unsigned how) {
    if (region->policy == PT_NEXT_TOUCH) return 0; /* fresh pages go where they are first touched */
    struct span span = span_of(region, address, bytes);
    if (region->policy == PT_INTERLEAVE)
        return nf_interleave(span.start, span.end, &table->runs[region->first_run], region->runs, how);
    return place_runs(table, region, address, bytes, how);
}

/* A block of the heap: other kinds lose their policy with their mapping. */
void nf_unplace(uintptr_t address, size_t bytes) {
    nf_reset_policy(page_of(address + page_bytes() / 2), page_of(address + bytes + page_bytes() / 2));
}

/* ---- where the pages are ---- */

/* Room to look at pages, of several threads at a time: a thread that looks is not waited for, since that may take long. */
static struct look {
    _Atomic bool taken;
    void *pages[BATCH];
    int status[BATCH];
    uint32_t wanted[BATCH];
    unsigned pages_on[NODES + 1][NODES + 1]; /* [node of the plan][node found]; the last: none, or too high */
} looks[LOOKS];

static struct look *new_look(void) {
    for (unsigned turn = 0;; turn++) {
        struct look *look = &looks[turn % LOOKS];
        if (!atomic_exchange_explicit(&look->taken, true, memory_order_acquire)) return look;
        if (turn % LOOKS == LOOKS - 1) sched_yield();
    }
}

static void end_look(struct look *look) { atomic_store_explicit(&look->taken, false, memory_order_release); }

/* Threads of the parent process may have been at it. */
void nf_looks_forked(void) {
    for (unsigned i = 0; i < LOOKS; i++) end_look(&looks[i]);
}

/* Which run of a region is looked at, and its pages, while pages ascend. */
struct cursor {
    uint32_t run;
    struct span pages;
};

static struct cursor first_run(const struct pt_table *table, const struct pt_region *region, struct span block) {
    struct cursor cursor = {0, {0, 0}};
    if (region->runs)
        cursor.pages = run_span(table, region, &table->runs[region->first_run], block.start, block.end - block.start);
    return cursor;
}

/* Node of the run that the page at `at` is of. */
static uint32_t node_wanted(const struct pt_table *table, const struct pt_region *region, struct span block,
                            uintptr_t at, struct cursor *cursor) {
    const struct pt_run *runs = &table->runs[region->first_run];
    while (cursor->run < region->runs) {
        if (at < cursor->pages.start) return NODES;
        if (at < cursor->pages.end) return runs[cursor->run].node < NODES ? runs[cursor->run].node : NODES;
        if (++cursor->run < region->runs)
            cursor->pages = run_span(table, region, &runs[cursor->run], block.start, block.end - block.start);
    }
    return NODES;
}

static void find_pages(struct look *look, size_t count) {
    memset(look->status, 0xff, count * sizeof *look->status);
    syscall(SYS_move_pages, 0, count, look->pages, NULL, look->status, 0);
}

/* Memory that an allocator uses again has its pages already. Moving makes the kernel stop all cpus, so only where some are
 * elsewhere: of `most` pages, or fewer, evenly spaced. NF_MOVE: some are; 0: none is.
 */
static unsigned moving(const struct pt_table *table, const struct pt_region *region, uintptr_t address, size_t bytes,
                       size_t most) {
    struct span span = span_of(region, address, bytes), block = {address, address + bytes};
    struct cursor cursor = first_run(table, region, block);
    size_t all = (span.end - span.start) / page_bytes(), count = all < most ? all : most;
    unsigned how = 0;
    struct look *look = new_look();
    for (size_t i = 0; i < count; i++) {
        uintptr_t at = span.start + all * i / count * page_bytes();
        look->pages[i] = (void *)at;
        look->wanted[i] = node_wanted(table, region, block, at, &cursor);
    }
    if (count) find_pages(look, count);
    for (size_t i = 0; i < count; i++)
        if (look->status[i] >= 0 && look->wanted[i] < NODES && look->status[i] != (int)look->wanted[i]) how = NF_MOVE;
    end_look(look);
    return how;
}

static bool has_homes(const struct pt_region *region) {
    return region->policy == PT_BIND || region->policy == PT_PREFERRED;
}

int nf_place(const struct pt_table *table, const struct pt_region *region, uintptr_t address, size_t bytes) {
    bool seen = has_homes(region) && bytes / page_bytes() < BATCH;
    return place(table, region, address, bytes, seen ? moving(table, region, address, bytes, BATCH) : NF_MOVE);
}

int nf_place_block(const struct pt_table *table, const struct pt_region *rule, uintptr_t address, size_t bytes) {
    return place(table, rule, address, bytes, has_homes(rule) ? moving(table, rule, address, bytes, GLANCES) : 0);
}

static void count_batch(struct look *look, size_t count) {
    find_pages(look, count);
    for (size_t i = 0; i < count; i++) {
        int node = look->status[i];
        look->pages_on[look->wanted[i]][node >= 0 && node < NODES ? node : NODES]++;
    }
}

static void log_counts(const struct look *look, const struct pt_table *table, const struct pt_region *region,
                       uint64_t bytes_each) {
    uint64_t number = (uint64_t)(region - table->regions);
    for (uint32_t plan = 0; plan <= NODES; plan++)
        for (uint32_t found = 0; found <= NODES; found++) {
            if (!look->pages_on[plan][found]) continue;
            uint32_t nodes = (plan == NODES ? UNTOUCHED : plan) << 16 | (found == NODES ? UNTOUCHED : found);
            bool full = plan != found && plan != NODES && found != NODES && nf_lacks_room(plan);
            np_log(NF_REGION_PAGES, np_thread_number(), nodes, number, look->pages_on[plan][found] * bytes_each, full,
                   0);
        }
}

/* Looks at every page, or at evenly spaced ones of a region with very many. */
void nf_verify(const struct pt_table *table, const struct pt_region *region, uintptr_t address, size_t bytes) {
    struct look *look = new_look();
    memset(look->pages_on, 0, sizeof look->pages_on);
    struct span span = span_of(region, address, bytes);
    size_t most = region < &table->regions[pt_first_rule(table)] ? MAX_QUERIED : OF_A_RULE;
    size_t page = page_bytes(), stride = ((span.end - span.start) / page / most + 1) * page, used = 0;
    struct span block = {address, address + bytes};
    struct cursor cursor = first_run(table, region, block);
    for (uintptr_t at = span.start; at < span.end; at += stride) {
        look->pages[used] = (void *)at;
        look->wanted[used++] = node_wanted(table, region, block, at, &cursor);
        if (used == BATCH || span.end - at <= stride) count_batch(look, used), used = 0;
    }
    log_counts(look, table, region, stride);
    end_look(look);
}
