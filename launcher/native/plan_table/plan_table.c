/* The table of a plan: checked as a whole when it is loaded, so that nothing later can leave its bounds. */
#include "plan_table.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { VERSION = 5 };
#define MOST_BYTES ((size_t)1 << 30)

uint64_t pt_hash(const char *name) {
    uint64_t hash = 14695981039346656037ull;
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 1099511628211ull;
    return hash;
}

uint64_t pt_hash_program(const char *path) {
    char name[16] = "";
    const char *last = strrchr(path, '/');
    strncat(name, last ? last + 1 : path, sizeof name - 1);
    return pt_hash(name);
}

static bool check_memory(const struct pt_table *table, const struct pt_thread *thread) {
    if (!thread->memory) return true;
    if (thread->memory > table->header->cpus) return false;
    const uint32_t *count = &table->cpus[thread->memory - 1];
    if (*count > table->header->cpus - thread->memory) return false;
    for (uint32_t i = 1; i <= *count; i++)
        if (count[i] > PT_MAX_NODE) return false;
    return true;
}

static bool check_threads(const struct pt_table *table) {
    for (uint32_t i = 0; i < table->header->threads; i++) {
        const struct pt_thread *thread = &table->threads[i];
        if (thread->first_cpu > table->header->cpus || thread->cpus > table->header->cpus - thread->first_cpu)
            return false;
        if (thread->node < -1 || thread->node > PT_MAX_NODE || !check_memory(table, thread)) return false;
        if (thread->pool > table->header->threads || thread->lane > table->header->threads) return false;
    }
    for (uint32_t i = 0; i < table->header->cpus; i++)
        if (table->cpus[i] > PT_MAX_CPU) return false;
    return true;
}

static bool check_runs(const struct pt_table *table, const struct pt_region *region) {
    if (region->first_run > table->header->runs || region->runs > table->header->runs - region->first_run) return false;
    uint64_t end = 0;
    for (uint32_t i = 0; i < region->runs; i++) {
        const struct pt_run *run = &table->runs[region->first_run + i];
        if (run->offset < end || run->bytes == 0 || run->node > PT_MAX_NODE) return false;
        if (run->offset > region->bytes || run->bytes > region->bytes - run->offset) return false;
        end = run->offset + run->bytes;
    }
    return true;
}

static bool check_regions(const struct pt_table *table) {
    for (uint32_t i = 0; i < table->header->regions; i++) {
        const struct pt_region *region = &table->regions[i];
        if (region->kind < PT_HEAP || region->kind > PT_STATIC) return false;
        if (region->policy < PT_BIND || region->policy > PT_NEXT_TOUCH) return false;
        if (region->scales > 1 || (region->scales && !region->bytes)) return false;
        if (region->bytes > (uint64_t)1 << 56 || !check_runs(table, region)) return false;
    }
    for (uint32_t i = 0; i < table->header->rules; i++) {
        const struct pt_region *rule = &table->regions[pt_first_rule(table) + i];
        if (rule->kind == PT_STATIC || rule->bytes == 0) return false;
    }
    return true;
}

static bool check_processes(const struct pt_table *table) {
    for (uint32_t i = 0; i < table->header->processes; i++)
        if (table->processes[i].parent_row > table->header->processes) return false;
    return true;
}

bool pt_check(const void *memory, size_t bytes, struct pt_table *table) {
    const struct pt_header *header = table->header = memory;
    if (bytes < sizeof *header || memcmp(header->magic, "NUMAPLPF", 8) || header->version != VERSION) return false;
    /* Counts are 32 bits and sizes at most 64, so that these sums cannot wrap. */
    uint64_t regions = sizeof *header + (uint64_t)header->threads * sizeof(struct pt_thread);
    uint64_t runs = regions + (uint64_t)header->regions * sizeof(struct pt_region);
    uint64_t sizes = runs + (uint64_t)header->runs * sizeof(struct pt_run);
    uint64_t processes = sizes + (uint64_t)header->rules * sizeof(struct pt_sizes);
    uint64_t cpus = processes + (uint64_t)header->processes * sizeof(struct pt_process);
    if (header->rules > header->regions) return false;
    if (header->bytes != bytes || cpus + (uint64_t)header->cpus * sizeof(uint32_t) != bytes) return false;
    const char *base = memory;
    table->threads = (const void *)(base + sizeof *header);
    table->regions = (const void *)(base + regions);
    table->runs = (const void *)(base + runs);
    table->sizes = (const void *)(base + sizes);
    table->processes = (const void *)(base + processes);
    table->cpus = (const void *)(base + cpus);
    return check_threads(table) && check_regions(table) && check_processes(table);
}

bool pt_load(const char *path, struct pt_table *table) {
    struct stat facts;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    void *memory = MAP_FAILED;
    bool usable = fstat(file, &facts) == 0 && facts.st_size > 0 && (size_t)facts.st_size <= MOST_BYTES;
    /* A private copy: what was checked cannot change any more. */
    if (usable)
        memory =
            (void *)syscall(SYS_mmap, NULL, facts.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t have = 0;
    ssize_t got = 1;
    while (memory != MAP_FAILED && have < (size_t)facts.st_size && got > 0) {
        got = read(file, (char *)memory + have, (size_t)facts.st_size - have);
        if (got > 0) have += (size_t)got;
    }
    close(file);
    if (memory == MAP_FAILED) return false;
    bool good = have == (size_t)facts.st_size && pt_check(memory, have, table);
    if (good) mprotect(memory, have, PROT_READ);
    else syscall(SYS_munmap, memory, facts.st_size);
    return good;
}

static int order(uint64_t one, uint64_t other) { return (one > other) - (one < other); }

static int order_threads(const void *one, const void *other) {
    const struct pt_thread *a = one, *b = other;
    int by_process = order(a->process, b->process);
    return by_process ? by_process : order(a->path, b->path);
}

static int order_regions(const void *one, const void *other) {
    const struct pt_region *a = one, *b = other;
    int by_process = order(a->process, b->process), by_thread = order(a->thread, b->thread);
    return by_process ? by_process : by_thread ? by_thread : order(a->sequence, b->sequence);
}

const struct pt_thread *pt_find_thread(const struct pt_table *table, uint64_t process, uint64_t path) {
    const struct pt_thread key = {.process = process, .path = path};
    return bsearch(&key, table->threads, table->header->threads, sizeof key, order_threads);
}

const struct pt_thread *pt_first_thread(const struct pt_table *table, uint64_t process) {
    return pt_find_thread(table, process, pt_hash("0"));
}

/* ---- processes ---- */

enum { LONGEST_TURN = 16 };

struct search { /* for parts of processes that ran what the actual one runs */
    const struct pt_table *table;
    const struct pt_process *actual;
    bool below; /* not of its parent's children, but of the children of these */
};

/* Which child of the actual one's parent it was, or was made by; 0: it is none that is searched for. */
static uint32_t number_of(const struct search *search, const struct pt_process *one) {
    if (one->program != search->actual->program) return 0;
    if (search->below) one = one->parent_row ? &search->table->processes[one->parent_row - 1] : NULL;
    return one && one->parent == search->actual->parent ? one->number : 0;
}

static uint32_t distance(const struct search *search, const struct pt_process *one) {
    uint32_t number = number_of(search, one), actual = search->actual->number;
    return number > actual ? number - actual : actual - number;
}

/* The nearest one, or the next nearest after another; of two as near, the plan's first. */
static const struct pt_process *nearest(const struct search *search, const struct pt_process *after) {
    const struct pt_process *next = NULL;
    for (uint32_t i = 0; i < search->table->header->processes; i++) {
        const struct pt_process *one = &search->table->processes[i];
        if (!number_of(search, one)) continue;
        uint32_t off = distance(search, one), passed = after ? distance(search, after) : 0;
        bool comes = !after || off > passed || (off == passed && one > after);
        if (comes && (!next || off < distance(search, next))) next = one;
    }
    return next;
}

/* The last ones, from the very last on; how many. */
static unsigned last_of(const struct search *search, const struct pt_process *found[2 * LONGEST_TURN]) {
    unsigned count = 0;
    for (; count < 2 * LONGEST_TURN; count++) {
        const struct pt_process *next = NULL;
        uint64_t before = count ? number_of(search, found[count - 1]) : UINT64_MAX;
        uint32_t largest = 0;
        for (uint32_t i = 0; i < search->table->header->processes; i++) {
            uint32_t number = number_of(search, &search->table->processes[i]);
            if (number > largest && number < before) largest = number, next = &search->table->processes[i];
        }
        if (!next) break;
        found[count] = next;
    }
    return count;
}

static bool have_same_cpus(const struct pt_table *table, const struct pt_process *one, const struct pt_process *other) {
    const struct pt_thread *a = pt_first_thread(table, one->process), *b = pt_first_thread(table, other->process);
    return a && b && a->cpus == b->cpus &&
           !memcmp(&table->cpus[a->first_cpu], &table->cpus[b->first_cpu], a->cpus * sizeof *table->cpus);
}

/* How many children make a turn, of those that have some cpus one after the other, at least twice; else 1. */
static unsigned turn_of(const struct pt_table *table, const struct pt_process *const *last, unsigned count) {
    for (unsigned turn = 1; 2 * turn <= count; turn++) {
        unsigned same = 0;
        while (same < turn && have_same_cpus(table, last[same], last[same + turn])) same++;
        if (same == turn) return turn;
    }
    return 1;
}

/* The nearest, or the next in turn beyond the last. */
static const struct pt_process *usual(const struct search *search) {
    const struct pt_process *near = nearest(search, NULL), *last[2 * LONGEST_TURN];
    uint32_t actual = search->actual->number;
    if (!near || number_of(search, near) >= actual) return near;
    unsigned count = last_of(search, last), turn = turn_of(search->table, last, count);
    uint32_t largest = number_of(search, last[0]);
    return actual > largest ? last[turn - 1 - (actual - largest - 1) % turn] : near;
}

static const struct pt_process *find_part(const struct search *search, pt_taken *taken) {
    const struct pt_process *wanted = usual(search);
    if (!wanted || !taken(wanted, search->actual)) return wanted;
    const struct pt_process *one = nearest(search, NULL);
    while (one && (one == wanted || taken(one, search->actual))) one = nearest(search, one);
    return one ? one : wanted;
}

const struct pt_process *pt_find_process(const struct pt_table *table, uint64_t process) {
    for (uint32_t i = 0; i < table->header->processes; i++)
        if (table->processes[i].process == process) return &table->processes[i];
    return NULL;
}

uint64_t pt_plays(const struct pt_table *table, const struct pt_process *actual, pt_taken *taken) {
    const struct pt_process *found = find_part(&(struct search){table, actual, false}, taken);
    if (!found) found = find_part(&(struct search){table, actual, true}, taken);
    for (uint32_t i = 0; i < table->header->processes && !found; i++) {
        const struct pt_process *one = &table->processes[i];
        if (one->process == actual->parent && one->program == actual->program && !taken(one, actual)) found = one;
    }
    return found ? found->process : actual->process;
}

const struct pt_thread *pt_find_unplanned(const struct pt_table *table, uint64_t process) {
    const struct pt_thread *row = pt_find_thread(table, process, 0);
    return row ? row : pt_find_thread(table, 0, 0);
}

uint32_t pt_memory_nodes(const struct pt_table *table, uint64_t process, const uint32_t **nodes) {
    const struct pt_thread *main_thread = pt_first_thread(table, process);
    if (!main_thread || !main_thread->memory) return 0;
    *nodes = &table->cpus[main_thread->memory];
    return table->cpus[main_thread->memory - 1];
}

void pt_fill_mask(const uint32_t *cpus, uint32_t count, unsigned char mask[PT_MASK]) {
    memset(mask, 0, PT_MASK);
    for (uint32_t i = 0; i < count; i++) mask[cpus[i] / 8] |= (unsigned char)(1u << cpus[i] % 8);
}

const struct pt_region *pt_find_region(const struct pt_table *table, uint64_t process, uint64_t thread,
                                       uint32_t sequence) {
    const struct pt_region key = {.process = process, .thread = thread, .sequence = sequence};
    return bsearch(&key, table->regions, pt_first_rule(table), sizeof key, order_regions);
}

static int order_sites(const struct pt_region *a, const struct pt_region *b) {
    int found = order(a->process, b->process);
    if (!found) found = order(a->thread, b->thread);
    if (!found) found = order(a->module, b->module);
    if (!found) found = order(a->offset, b->offset);
    return found ? found : order(a->kind, b->kind);
}

const struct pt_region *pt_find_rule(const struct pt_table *table, const struct pt_region *block) {
    const struct pt_region *rules = &table->regions[pt_first_rule(table)];
    uint32_t low = 0, high = table->header->rules;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int found = order_sites(&rules[middle], block);
        if (!found && table->sizes[middle].most < block->bytes) found = -1;
        if (!found && table->sizes[middle].least > block->bytes) found = 1;
        if (!found) return &rules[middle];
        if (found < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

uint64_t pt_offset_in(const struct pt_table *table, const struct pt_region *region, uint64_t offset, uint64_t bytes) {
    if (region < &table->regions[pt_first_rule(table)] && !region->scales) return offset;
    /* The numbers are below 2^57: of the quotient's digits no more are lost than a page has. */
    return offset == region->bytes ? bytes
                                   : (uint64_t)((long double)offset / (long double)region->bytes * (long double)bytes);
}
