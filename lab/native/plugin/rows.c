#include "rows.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_SIZE 4096u /* rows a vcpu; programs with more tasks share the last one */
#define EXCLUDED_MAX 64

struct table {
    unsigned cpu;
    unsigned used;
    struct lab_row *slots[TABLE_SIZE]; /* open addressing by task */
    struct lab_row rest;               /* tasks that found no room, and those before the first switch */
};

struct lab_row *lab_rows_current[VCPUS_MAX];
static struct table *tables;
static unsigned table_count;
static bool with_lines;
static uint64_t excluded[EXCLUDED_MAX];
static unsigned excluded_count;

/* What tasks counted until they ended or became other programs, as lines of the counts file. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file;
static char *log_text;
static size_t log_bytes;

bool lab_rows_open(unsigned vcpus, bool lines) {
    table_count = vcpus < VCPUS_MAX ? vcpus : VCPUS_MAX;
    tables = calloc(table_count, sizeof *tables);
    with_lines = lines;
    for (unsigned v = 0; tables && v < table_count; v++) {
        tables[v].cpu = v;
        lab_rows_current[v] = &tables[v].rest;
        if (lines && !(tables[v].rest.lines = calloc(1, sizeof *tables[v].rest.lines))) return false;
    }
    return tables != NULL;
}

static void clear(struct lab_row *row) {
    memset(row->accesses, 0, sizeof row->accesses);
    memset(row->polls, 0, sizeof row->polls);
    row->looks.seen = LOOKS_MOST + 1;
    row->loads = row->stores = 0;
    if (row->lines) memset(row->lines, 0, sizeof *row->lines);
}

/* Where a task's row is, or belongs. */
static struct lab_row **slot_of(struct table *table, uint64_t task) {
    unsigned slot = (unsigned)((task >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 52) % TABLE_SIZE;
    while (table->slots[slot] && table->slots[slot]->task != task) slot = (slot + 1) % TABLE_SIZE;
    return &table->slots[slot];
}

static struct lab_row *row_of(struct table *table, uint64_t task) {
    struct lab_row **slot = slot_of(table, task);
    if (*slot) return *slot;
    struct lab_row *row = table->used < TABLE_SIZE / 2 ? calloc(1, sizeof *row) : NULL;
    if (row && with_lines && !(row->lines = calloc(1, sizeof *row->lines))) free(row), row = NULL;
    if (!row) return &table->rest;
    row->task = task;
    table->used++;
    return *slot = row;
}

void lab_rows_switch(unsigned vcpu, uint64_t task) {
    if (vcpu < table_count) lab_rows_current[vcpu] = row_of(&tables[vcpu], task);
}

void lab_rows_set_cpu(unsigned vcpu, unsigned cpu) {
    if (vcpu < table_count) tables[vcpu].cpu = cpu;
}

static void log_clear(void) {
    if (log_file) fclose(log_file);
    free(log_text);
    log_file = NULL;
    log_text = NULL;
    log_bytes = 0;
}

void lab_rows_reset(void) {
    excluded_count = 0;
    log_clear();
    for (unsigned v = 0; v < table_count; v++) {
        clear(&tables[v].rest);
        for (unsigned i = 0; i < TABLE_SIZE; i++)
            if (tables[v].slots[i]) clear(tables[v].slots[i]);
    }
}

void lab_rows_exclude(uint64_t task) {
    if (excluded_count < EXCLUDED_MAX) excluded[excluded_count++] = task;
}

bool lab_rows_excluded(uint64_t task) {
    for (unsigned i = 0; i < excluded_count; i++)
        if (excluded[i] == task) return true;
    return false;
}

/* `mNODE:ACCESSES`, `cCPU:LINES` and `w0:ACCESSES`. */
static void write_lines(FILE *file, const struct lab_lines *lines) {
    for (unsigned node = 0; node <= NODES_MAX; node++)
        if (lines->memory[node]) fprintf(file, " m%u:%" PRIu64, node, lines->memory[node]);
    for (unsigned v = 0; v < table_count; v++)
        if (lines->moved[v]) fprintf(file, " c%u:%" PRIu64, tables[v].cpu, lines->moved[v]);
    if (lines->waited) fprintf(file, " w0:%" PRIu64, lines->waited);
}

/* `rNUMBER:COUNT`, in the order of lab/runs/counts.py. */
static void write_recorded(FILE *file, const struct lab_row *row) {
    fprintf(file, " r0:%" PRIu64 " r1:%" PRIu64, row->loads, row->stores);
    if (!row->lines) return;
    const struct cache_counts *c = &row->lines->counts;
    const uint64_t counts[] = {c->l1_misses,    c->l2_misses, c->llc_local, c->llc_remote,
                               c->remote_cache, c->coherence, c->within,    row->lines->shared_hits};
    const unsigned counted = sizeof counts / sizeof *counts;
    for (unsigned i = 0; i < counted; i++)
        if (counts[i]) fprintf(file, " r%u:%" PRIu64, 2 + i, counts[i]);
    for (unsigned i = 0; i < 2 * REACH_SIZES; i++) {
        uint64_t past = row->lines->past[i / REACH_SIZES][i % REACH_SIZES];
        if (past) fprintf(file, " r%u:%" PRIu64, 2 + counted + i, past);
    }
}

static void write_row(FILE *file, unsigned cpu, const struct lab_row *row) {
    uint64_t total = 0;
    for (unsigned node = 0; node <= NODES_MAX; node++) total += row->accesses[node];
    if (total == 0) return;
    fprintf(file, "%u %" PRIx64 " %d", cpu, row->task, lab_rows_excluded(row->task));
    for (unsigned node = 0; node <= NODES_MAX; node++)
        if (row->accesses[node] > row->polls[node])
            fprintf(file, " %u:%" PRIu64, node, row->accesses[node] - row->polls[node]);
    for (unsigned node = 0; node <= NODES_MAX; node++)
        if (row->polls[node]) fprintf(file, " p%u:%" PRIu64, node, row->polls[node]);
    if (row->lines) write_lines(file, row->lines);
    if (row->loads || row->stores) write_recorded(file, row);
    fputc('\n', file);
}

/* The task runs nowhere else, so its rows of other vcpus are written by none but us. */
void lab_rows_end_stage(unsigned vcpu) {
    uint64_t task = lab_rows_current[vcpu]->task;
    pthread_mutex_lock(&log_lock);
    if (!log_file) log_file = open_memstream(&log_text, &log_bytes);
    for (unsigned v = 0; log_file && v < table_count; v++) {
        struct lab_row *row = *slot_of(&tables[v], task);
        if (!row) continue;
        write_row(log_file, tables[v].cpu, row);
        clear(row);
    }
    if (log_file) fprintf(log_file, "stage %" PRIx64 "\n", task);
    pthread_mutex_unlock(&log_lock);
}

void lab_rows_write(FILE *file) {
    fputs("numaplan-lab-counts 5\n", file);
    if (log_file && !fflush(log_file)) fwrite(log_text, 1, log_bytes, file);
    for (unsigned v = 0; v < table_count; v++) {
        write_row(file, tables[v].cpu, &tables[v].rest);
        for (unsigned i = 0; i < TABLE_SIZE; i++)
            if (tables[v].slots[i]) write_row(file, tables[v].cpu, tables[v].slots[i]);
    }
    fputs("end\n", file);
}
