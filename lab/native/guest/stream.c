/*
 * Samples as `perf record -o -` writes them: loads and stores with latency and the memory that served them. Latency is
 * that of an idle machine with the guest's distances; no cache is modelled, so every access was served by memory.
 */
#include "../plugin/samples.h"
#include "guest.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 64
#define CPUS_MAX 1024
#define LOCAL_NS 90u /* at distance 10: what the loop takes where a machine's latencies are not known */
#define LOCAL_DISTANCE 10u
#define MOST_BYTES (16u << 20)
#define RECORD_HEADER_ATTR 64
#define RECORD_EVENT_UPDATE 78
#define UPDATE_NAME 2
#define PIPE_MAGIC UINT64_C(0x32454c4946524550) /* "PERFILE2" */

enum { LOADS = 1, STORES = 2 }; /* ids of the events */

static unsigned distances[NODES_MAX][NODES_MAX];
static unsigned node_of_cpu[CPUS_MAX];

static void learn_cpus(const char *list, unsigned node) {
    unsigned first, last;
    int used;
    for (const char *at = list; sscanf(at, "%u%n", &first, &used) == 1; at += *at == ',') {
        at += used;
        last = first;
        if (sscanf(at, "-%u%n", &last, &used) == 1) at += used;
        for (unsigned cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++) node_of_cpu[cpu] = node;
    }
}

static bool read_node(unsigned node, const char *name, char *text, int bytes) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/%s", node, name);
    FILE *file = fopen(path, "re");
    bool ok = file && fgets(text, bytes, file);
    if (file) fclose(file);
    return ok;
}

/* The guest's nodes are numbered without gaps. */
void guest_stream_learn_nodes(void) {
    char text[4096];
    for (unsigned node = 0; node < NODES_MAX && read_node(node, "cpulist", text, sizeof text); node++) {
        learn_cpus(text, node);
        if (!read_node(node, "distance", text, sizeof text)) return;
        char *at = text;
        for (unsigned other = 0; other < NODES_MAX; other++) distances[node][other] = (unsigned)strtoul(at, &at, 10);
    }
}

bool guest_bytes_add(struct guest_bytes *bytes, const void *data, size_t count) {
    if (bytes->used + count > bytes->room) {
        size_t room = 2 * (bytes->used + count);
        char *grown = bytes->used + count <= MOST_BYTES ? realloc(bytes->data, room) : NULL;
        if (!grown) return false;
        bytes->data = grown;
        bytes->room = room;
    }
    memcpy(bytes->data + bytes->used, data, count);
    bytes->used += count;
    return true;
}

static bool add_event(struct guest_bytes *bytes, uint64_t id, const char *name) {
    struct {
        struct perf_event_header header;
        struct perf_event_attr attr;
        uint64_t id;
    } event = {.header = {RECORD_HEADER_ATTR, 0, sizeof event},
               .attr = {.type = PERF_TYPE_RAW, .size = sizeof event.attr, .config = id},
               .id = id};
    struct {
        struct perf_event_header header;
        uint64_t type, id;
        char name[32];
    } update = {.header = {RECORD_EVENT_UPDATE, 0, sizeof update}, .type = UPDATE_NAME, .id = id};
    event.attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                             PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_WEIGHT |
                             PERF_SAMPLE_DATA_SRC;
    snprintf(update.name, sizeof update.name, "%s", name);
    return guest_bytes_add(bytes, &event, sizeof event) && guest_bytes_add(bytes, &update, sizeof update);
}

bool guest_stream_begin(struct guest_bytes *bytes) {
    const uint64_t head[2] = {PIPE_MAGIC, sizeof head};
    return guest_bytes_add(bytes, head, sizeof head) && add_event(bytes, LOADS, "lab/mem-loads/") &&
           add_event(bytes, STORES, "lab/mem-stores/");
}

static uint64_t source_of(bool is_store, unsigned distance) {
    uint64_t level = distance == LOCAL_DISTANCE ? PERF_MEM_LVL_LOC_RAM : PERF_MEM_LVL_REM_RAM1;
    return PERF_MEM_S(OP, NA) | (uint64_t)(is_store ? PERF_MEM_OP_STORE : PERF_MEM_OP_LOAD) << PERF_MEM_OP_SHIFT |
           (level | PERF_MEM_LVL_HIT) << PERF_MEM_LVL_SHIFT;
}

bool guest_stream_sample(struct guest_bytes *bytes, const struct lab_sample *sample, struct guest_task_ids ids,
                         int64_t clock_shift) {
    bool is_store = sample->flags & SAMPLES_STORE, known = sample->node < NODES_MAX && sample->cpu < CPUS_MAX;
    unsigned distance = known ? distances[node_of_cpu[sample->cpu]][sample->node] : 0;
    struct {
        struct perf_event_header header;
        uint64_t id, code;
        uint32_t pid, tid;
        uint64_t time, address;
        uint32_t cpu, unused;
        uint64_t period, weight, source;
    } record = {.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, sizeof record},
                .id = is_store ? STORES : LOADS,
                .code = sample->code,
                .pid = ids.pid,
                .tid = ids.tid,
                .time = sample->time_ns + (uint64_t)clock_shift,
                .address = sample->address,
                .cpu = sample->cpu,
                .period = sample->period,
                .weight = LOCAL_NS * distance / LOCAL_DISTANCE,
                .source = source_of(is_store, distance)};
    return guest_bytes_add(bytes, &record, sizeof record);
}

bool guest_stream_lost(struct guest_bytes *bytes, uint64_t count) {
    struct {
        struct perf_event_header header;
        uint64_t id, lost;
    } record = {{PERF_RECORD_LOST, 0, sizeof record}, LOADS, count};
    return count == 0 || guest_bytes_add(bytes, &record, sizeof record);
}
