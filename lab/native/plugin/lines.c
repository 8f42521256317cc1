#include "lines.h"

struct cache_core lab_lines_cores[VCPUS_MAX];
struct reach_core lab_lines_reach[VCPUS_MAX];
static unsigned cpus[VCPUS_MAX];
static struct cache_page *pages;
static uint64_t touched; /* how many of them */

void lab_lines_set_cpu(unsigned vcpu, unsigned cpu) { cpus[vcpu] = cpu; }

bool lab_lines_open(unsigned vcpus) {
    pages = caches_zeroed(lab_nodes_pages() * sizeof *pages);
    caches.locked = true;
    if (!pages || !caches_init() || (reach_asked() && !reach_init())) return false;
    for (unsigned vcpu = 0; vcpu < vcpus; vcpu++) {
        struct cache_core *core = &lab_lines_cores[vcpu];
        if (cpus[vcpu] >= caches.cpus) return false;
        core->slot = vcpu;
        core->node = caches.cpu_nodes[cpus[vcpu]];
        core->domain = caches.cpu_domains[cpus[vcpu]];
        reach_attach(&lab_lines_reach[vcpu], core, NULL);
        lab_lines_switch(vcpu);
        if (!caches_attach(core)) return false;
    }
    return true;
}

void lab_lines_switch(unsigned vcpu) {
    struct lab_lines *lines = lab_rows_current[vcpu]->lines;
    lab_lines_cores[vcpu].counts = &lines->counts;
    lab_lines_cores[vcpu].moved = lines->moved;
    lab_lines_reach[vcpu].past = lines->past;
}

static void touch_page(struct cache_core *core, uint64_t key, bool store) {
    uint64_t first = key >> PAGE_SHIFT << (PAGE_SHIFT - LINE_SHIFT);
    for (uint64_t line = first; line < first + PAGE_LINES; line++)
        if (!caches_hit(core, line, store)) caches_miss(core, line, store);
}

void lab_lines_copied(unsigned vcpu, uint64_t from, uint64_t to) {
    struct cache_core *core = &lab_lines_cores[vcpu];
    if (!core->l1) return;
    struct cache_counts *counts = core->counts, others = {0};
    uint64_t *moved = core->moved;
    core->counts = &others; /* what the kernel reads from memory is no access of the program's */
    touch_page(core, from, false);
    core->moved = NULL; /* and nobody asks for what was there before */
    touch_page(core, to, true);
    core->moved = moved;
    core->counts = counts;
}

uint64_t lab_lines_footprint(void) { return touched << PAGE_SHIFT; }

struct cache_page *caches_page(const struct cache_core *core, uint64_t line) {
    uint64_t number = lab_nodes_page(line << LINE_SHIFT);
    struct cache_page *page = &pages[number];
    page->index = (uint32_t)number;
    page->home = lab_nodes_find(line << LINE_SHIFT);
    touched += page->domains == 0;
    caches_page_touched(page, core->domain);
    return page;
}
