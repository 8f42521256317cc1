/*
 * Tell the plugin which memory belongs to which node: the physical span of each node as the kernel has it, and probes, pages bound
 * to each node whose physical address the kernel tells us and whose identity in QEMU the plugin sees.
 */
#include "../plugin/marks.h"
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODES_MAX 64
#define PROBES 32
#define PROBE_STRIDE (256u << 10)
#define PAGE 4096u

struct span {
    uint64_t first, last; /* page frames, last exclusive; equal: no memory */
};

static void read_spans(struct span spans[NODES_MAX]) {
    FILE *file = fopen("/proc/zoneinfo", "re");
    if (!file) guest_die("/proc/zoneinfo: %s", strerror(errno));
    char line[256];
    unsigned node = NODES_MAX;
    uint64_t spanned = 0, start;
    while (fgets(line, sizeof line, file)) {
        sscanf(line, "Node %u,", &node);
        sscanf(line, " spanned %" SCNu64, &spanned);
        if (node >= NODES_MAX || sscanf(line, " start_pfn: %" SCNu64, &start) != 1 || spanned == 0) continue;
        struct span *span = &spans[node];
        bool empty = span->first == span->last;
        uint64_t first = empty || start < span->first ? start : span->first;
        uint64_t last = empty || start + spanned > span->last ? start + spanned : span->last;
        *span = (struct span){first, last};
        spanned = 0;
    }
    fclose(file);
}

static uint64_t frame_of(int pagemap, const void *page) {
    uint64_t entry = 0;
    off_t offset = (off_t)((uintptr_t)page / PAGE * sizeof entry);
    if (pread(pagemap, &entry, sizeof entry, offset) != sizeof entry || !(entry >> 63))
        guest_die("pagemap does not tell where a page is");
    return entry & ((UINT64_C(1) << 55) - 1);
}

static void probe(int pagemap, unsigned node, volatile uint64_t *page) {
    int actual = -1;
    *page = 1; /* the kernel places the page now */
    if (syscall(SYS_get_mempolicy, &actual, NULL, 0UL, page, MPOL_F_NODE | MPOL_F_ADDR) || actual != (int)node)
        guest_die("a page bound to node %u is on node %d", node, actual);
    uint64_t physical = frame_of(pagemap, (const void *)page) * PAGE;
    guest_mark_with(MARK_PROBE, 2, (uint64_t[]){(uintptr_t)page, physical});
    *page = 2;
}

static void probe_node(int pagemap, unsigned node) {
    size_t bytes = (size_t)PROBES * PROBE_STRIDE;
    unsigned long mask[2] = {1UL << node, 0};
    char *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED || syscall(SYS_mbind, area, bytes, MPOL_BIND, mask, NODES_MAX + 1UL, 0U))
        guest_die("cannot bind memory to node %u: %s", node, strerror(errno));
    madvise(area, bytes, MADV_NOHUGEPAGE);
    for (unsigned i = 0; i < PROBES; i++)
        probe(pagemap, node, (volatile uint64_t *)(void *)(area + (size_t)i * PROBE_STRIDE));
    munmap(area, bytes);
}

static void number_cpus(struct guest_frame *ready) {
    cpu_set_t all, one;
    char key[32];
    if (sched_getaffinity(0, sizeof all, &all)) guest_die("sched_getaffinity: %s", strerror(errno));
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one)) guest_die("cpu %d cannot be used: %s", cpu, strerror(errno));
        guest_mark_with(MARK_CPU, 1, (uint64_t[]){(uint64_t)cpu});
        snprintf(key, sizeof key, "cpu%d", cpu);
        unsigned node = 0;
        syscall(SYS_getcpu, NULL, &node, NULL);
        guest_frame_add_number(ready, key, node);
    }
    sched_setaffinity(0, sizeof all, &all);
}

void guest_calibrate(struct guest_frame *ready) {
    struct span spans[NODES_MAX] = {0};
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    number_cpus(ready);
    read_spans(spans);
    for (unsigned node = 0; node < NODES_MAX; node++) {
        if (spans[node].first == spans[node].last) continue;
        uint64_t start = spans[node].first * PAGE, bytes = (spans[node].last - spans[node].first) * PAGE;
        guest_mark_with(MARK_SPAN, 3, (uint64_t[]){node, start, bytes});
        probe_node(pagemap, node);
    }
    guest_mark(MARK_CALIBRATED);
    close(pagemap);
}
