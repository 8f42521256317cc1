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

struct lab_answer lab_lines_buffer(unsigned vcpu, uint64_t key, bool store) {
    struct cache_core *core = &lab_lines_cores[vcpu];
    struct lab_answer answer = {.level = LEVEL_UNKNOWN};
    if (!core->l1) return answer;
    answer.level = reach_copied(&lab_lines_reach[vcpu], core, key >> LINE_SHIFT, store);
    answer.kept = core->kept;
    return answer;
}

void lab_lines_copied(unsigned vcpu, uint64_t from, uint64_t to) {
    if (!lab_lines_cores[vcpu].l1) return;
    struct cache_counts *counts = lab_lines_cores[vcpu].counts, before = *counts;
    for (uint64_t at = 0; at < UINT64_C(1) << PAGE_SHIFT; at += UINT64_C(1) << LINE_SHIFT) {
        lab_lines_buffer(vcpu, (from >> PAGE_SHIFT << PAGE_SHIFT) + at, false);
        lab_lines_buffer(vcpu, (to >> PAGE_SHIFT << PAGE_SHIFT) + at, true);
    }
    *counts = before; /* the kernel wanted this, not the program */
}

void lab_lines_cleared(uint64_t key) {
    struct cache_page *page = &pages[lab_nodes_page(key)];
    if (!page->domains) return; /* no program has touched it */
    caches_lock();
    caches_forget(page, key >> PAGE_SHIFT);
    reach_forget_page(page);
    caches_unlock();
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
