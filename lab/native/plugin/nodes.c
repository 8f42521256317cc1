/*
 * From what QEMU says about an access to the node of its page.
 *
 * A key is a number that rises by one with each byte of a node's memory. QEMU offers one through its interface
 * (qemu_plugin_hwaddr_phys_addr), whose relation to guest-physical addresses differs between versions and
 * which searches all memory blocks on every call. A second one lies in the second word of the opaque
 * qemu_plugin_hwaddr (a host address, in newer versions a physical one) and costs nothing. Neither is trusted:
 * the guest reports the physical address of each page it probes, and a key is used only if its difference to that is
 * the same for all probes of a node, and no two nodes then overlap.
 */
#include "nodes.h"

#include "caches.h"

#include <inttypes.h>

enum { KEY_WORD, KEY_CALL, KEYS };
static const char *const key_names[KEYS] = {"word", "call"};

struct span {
    uint64_t physical, bytes;
    unsigned node, probes;
    uint64_t offset[KEYS]; /* key minus guest-physical address */
    bool steady[KEYS];     /* the offset was the same for all probes */
};

static struct span spans[NODES_MAX];
static unsigned span_count;
static unsigned stray_probes;

/* What counting reads: spans in terms of the chosen key. */
static struct range {
    uint64_t start, bytes, physical;
    unsigned node;
} ranges[NODES_MAX];
static unsigned range_count;
static int chosen = KEY_CALL;

static uint64_t key_of(const struct qemu_plugin_hwaddr *page, int key) {
    return key == KEY_WORD ? ((const uint64_t *)(const void *)page)[1] : qemu_plugin_hwaddr_phys_addr(page);
}

void lab_nodes_add_span(uint64_t node, uint64_t physical, uint64_t bytes) {
    if (span_count < NODES_MAX && node < NODES_MAX)
        spans[span_count++] = (struct span){.physical = physical, .bytes = bytes, .node = (unsigned)node};
}

static struct span *span_of(uint64_t physical) {
    for (unsigned i = 0; i < span_count; i++)
        if (physical - spans[i].physical < spans[i].bytes) return &spans[i];
    return NULL;
}

void lab_nodes_add_probe(uint64_t physical, const struct qemu_plugin_hwaddr *page) {
    struct span *span = span_of(physical);
    if (!span || !page || qemu_plugin_hwaddr_is_io(page)) {
        stray_probes++;
        return;
    }
    for (int key = 0; key < KEYS; key++) {
        uint64_t offset = key_of(page, key) - physical;
        span->steady[key] = span->probes == 0 || (span->steady[key] && span->offset[key] == offset);
        span->offset[key] = offset;
    }
    span->probes++;
}

static bool overlap(const struct span *a, const struct span *b, int key) {
    uint64_t start_a = a->physical + a->offset[key], start_b = b->physical + b->offset[key];
    return start_a - start_b < b->bytes || start_b - start_a < a->bytes;
}

static bool usable(int key) {
    for (unsigned i = 0; i < span_count; i++) {
        if (spans[i].probes < 2 || !spans[i].steady[key]) return false;
        for (unsigned j = 0; j < i; j++)
            if (overlap(&spans[i], &spans[j], key)) return false;
    }
    return span_count > 0;
}

bool lab_nodes_calibrate(FILE *report) {
    bool ok = stray_probes == 0 && (usable(KEY_WORD) || usable(KEY_CALL));
    chosen = usable(KEY_WORD) ? KEY_WORD : KEY_CALL;
    range_count = 0;
    for (unsigned i = 0; ok && i < span_count; i++)
        ranges[range_count++] = (struct range){spans[i].physical + spans[i].offset[chosen], spans[i].bytes,
                                               spans[i].physical, spans[i].node};
    fprintf(report, "%s key %s stray %u\n", ok ? "ok" : "failed", key_names[chosen], stray_probes);
    for (unsigned i = 0; i < span_count; i++)
        fprintf(report, "span node %u physical %" PRIx64 " bytes %" PRIx64 " probes %u steady %d %d\n", spans[i].node,
                spans[i].physical, spans[i].bytes, spans[i].probes, spans[i].steady[KEY_WORD],
                spans[i].steady[KEY_CALL]);
    return ok;
}

uint64_t lab_nodes_key(const struct qemu_plugin_hwaddr *page) { return key_of(page, chosen); }

unsigned lab_nodes_find(uint64_t key) {
    for (unsigned i = 0; i < range_count; i++)
        if (key - ranges[i].start < ranges[i].bytes) return ranges[i].node;
    return NODE_UNKNOWN;
}

uint64_t lab_nodes_physical(uint64_t key) {
    for (unsigned i = 0; i < range_count; i++)
        if (key - ranges[i].start < ranges[i].bytes) return key - ranges[i].start + ranges[i].physical;
    return 0;
}

void lab_nodes_write(FILE *file) {
    for (unsigned i = 0; i < range_count; i++)
        fprintf(file, "node %u %" PRIu64 " %" PRIu64 "\n", ranges[i].node, ranges[i].physical, ranges[i].bytes);
}

uint64_t lab_nodes_page(uint64_t key) {
    uint64_t before = 0;
    for (unsigned i = 0; i < range_count; i++) {
        if (key - ranges[i].start < ranges[i].bytes) return before + ((key - ranges[i].start) >> PAGE_SHIFT);
        before += ranges[i].bytes >> PAGE_SHIFT;
    }
    return before;
}

uint64_t lab_nodes_pages(void) {
    uint64_t pages = 1;
    for (unsigned i = 0; i < range_count; i++) pages += ranges[i].bytes >> PAGE_SHIFT;
    return pages;
}
