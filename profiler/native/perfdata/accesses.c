/* From samples to memory accesses: which samples are some, and what a trace keeps of them.
 *
 * What counts as an access and what levels are called is decided in Python (profiler/perfdata/accesses), which
 * hands it over in tables.
 */
#include "perfdata.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Decoded columns, all of one length. */
struct samples {
    const int64_t *time, *pid, *tid, *cpu;
    const uint64_t *ip, *addr, *phys_addr, *period, *weight, *data_src;
    const int32_t *event;
    const uint8_t *cpumode;
};

/* Which samples are accesses. kinds: code by event; codes of loads, of stores, of what is no access unless data_src
 * tells one, and of what never is one, the lower of the two; in data_src the bits of loads and stores; has_cpu: by
 * event; cpus: numbers from here on are not believed; user_end: addresses from here on are the kernel's. */
struct rules {
    const uint8_t *kinds;
    uint64_t load_bit, store_bit;
    int64_t largest_tid, cpus;
    uint64_t user_end;
    const uint8_t *has_cpu;
    uint8_t load, store, none, never, first_guest;
};

/* What all accesses together say: time of the first one; seen: marks the ids of their processes, has one place
 * beyond the largest; of_kernel: how many others were to its memory, which no program places, or by the idle task. */
struct facts {
    int64_t first;
    uint8_t *seen;
    int64_t of_kernel;
};

/* Rows and codes of the accesses among `count` samples; returns how many. */
static int64_t choose(const struct samples *samples, int64_t count, const struct rules *rules, int64_t *rows,
                      uint8_t *codes, struct facts *facts) {
    const struct rules r = *rules;
    const struct samples s = *samples;
    const uint64_t largest = (uint64_t)r.largest_tid;
    uint8_t *const seen = facts->seen;
    int64_t found = 0, of_kernel = 0, first = facts->first;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t source = s.data_src[i];
        uint8_t code = r.kinds[s.event[i]];
        /* Where the hardware says what the access was it is believed: one event can sample both. */
        if (code == r.load || code == r.store || code == r.none)
            code = source & r.store_bit ? r.store : source & r.load_bit ? r.load : code;
        rows[found] = i;
        codes[found] = code;
        const int any = (s.addr[i] != 0) & (s.cpumode[i] < r.first_guest) & (code < r.never) & (s.time[i] >= 0) &
                        ((uint64_t)s.pid[i] <= largest) & ((uint64_t)s.tid[i] <= largest);
        const int is_one = any & (s.addr[i] < r.user_end) & (s.pid[i] != 0);
        found += is_one;
        of_kernel += any - is_one;
        first = is_one && s.time[i] < first ? s.time[i] : first;
        seen[is_one ? s.pid[i] : r.largest_tid + 1] = 1;
    }
    facts->first = first;
    facts->of_kernel += of_kernel;
    return found;
}

/* Tables of levels: by the low bits of data_src >> old_shift, of which old_of tells the table of an event, and by two
 * groups of bits next to each other. The first counts where both have the mark, or the second does not know. */
struct levels {
    const uint8_t *old, *old_of, *numbered;
    uint64_t old_mask, number_mask, hops_mask;
    int32_t old_shift, number_shift, hops_shift, hops_bits;
    uint8_t unknown, mark;
};

/* What a trace keeps; -1 where it is not known. phys_addr: NULL when there are none. */
struct accesses {
    int64_t *time;
    int32_t *pid, *tid, *cpu;
    uint64_t *addr, *phys_addr, *ip;
    uint8_t *is_write, *level;
    int32_t *latency;
};

/* Convert the chosen rows. */
static void convert(const struct samples *samples, const int64_t *rows, const uint8_t *codes, int64_t count,
                    const struct rules *rules, const struct levels *levels, const struct accesses *accesses) {
    const struct samples s = *samples;
    const struct accesses out = *accesses;
    const struct levels l = *levels;
    const uint8_t store = rules->store, *const has_cpu = rules->has_cpu;
    const uint64_t store_bit = rules->store_bit, cpus = (uint64_t)rules->cpus;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = rows[i];
        out.time[i] = s.time[row];
        out.pid[i] = (int32_t)s.pid[row];
        out.tid[i] = (int32_t)s.tid[row];
        out.addr[i] = s.addr[row];
        out.ip[i] = s.ip[row];
    }
    if (out.phys_addr)
        for (int64_t i = 0; i < count; i++) out.phys_addr[i] = s.phys_addr[rows[i]];
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = rows[i];
        const uint64_t source = s.data_src[row], weight = s.weight[row];
        const int64_t cpu = s.cpu[row];
        const int32_t event = s.event[row];
        const uint8_t old = l.old[l.old_of[event] * (l.old_mask + 1) + (source >> l.old_shift & l.old_mask)];
        const uint8_t numbered = l.numbered[(source >> l.number_shift & l.number_mask) << l.hops_bits |
                                            (source >> l.hops_shift & l.hops_mask)];
        out.cpu[i] = (uint64_t)cpu < cpus && has_cpu[event] ? (int32_t)cpu : -1;
        out.is_write[i] = (codes[i] == store) | ((source & store_bit) != 0);
        out.level[i] = (numbered == l.unknown || (numbered & old & l.mark) ? old : numbered) & (uint8_t)~l.mark;
        out.latency[i] = weight == 0 ? -1 : weight > INT32_MAX ? INT32_MAX : (int32_t)weight;
    }
}

/* Looks for threads that no record named. known: marks tids, has `size` places; last, used: what was found, by
 * its low bits, REMEMBERED places; out: their (pid << 32 | tid), most of them once, `found` of them. */
struct unrecorded {
    const uint8_t *known;
    int64_t size;
    uint64_t *last;
    uint8_t *used;
    uint64_t *out;
    int64_t found;
};

void perfdata_unrecorded(const int64_t *pid, const int64_t *tid, int64_t count, struct unrecorded *unrecorded) {
    enum { REMEMBERED = 1024 };
    const struct unrecorded s = *unrecorded;
    int64_t found = s.found;
    for (int64_t i = 0; i < count; i++) {
        if ((uint64_t)tid[i] < (uint64_t)s.size && s.known[tid[i]]) continue;
        const uint64_t word = (uint64_t)pid[i] << 32 | (uint32_t)tid[i];
        const size_t place = (size_t)(word % REMEMBERED);
        if (s.used[place] && s.last[place] == word) continue;
        s.used[place] = 1;
        s.last[place] = word;
        s.out[found++] = word;
    }
    unrecorded->found = found;
}

/* What to make of samples, and where to put it. period_sums has for each of `kinds` codes the sum of the periods and how
 * many samples have one, without_period for each event and code how many have none. */
struct collect {
    struct rules rules;
    struct levels levels;
    struct facts *facts;
    struct unrecorded *unrecorded;
    struct accesses out;
    uint8_t *codes;
    double *period_sums;
    int64_t *without_period;
    int64_t kinds;
};

static void add_periods(const struct samples *samples, const int64_t *rows, const uint8_t *codes, int64_t count,
                        const struct collect *how) {
    double *const sums = how->period_sums;
    int64_t *const without = how->without_period;
    const int64_t kinds = how->kinds;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t own = samples->period[rows[i]];
        if (own) {
            sums[codes[i]] += (double)own;
            sums[kinds + codes[i]] += 1;
        } else {
            without[samples->event[rows[i]] * kinds + codes[i]]++;
        }
    }
}

static struct accesses behind(const struct accesses *out, int64_t rows) {
    return (struct accesses){
        out->time + rows,    out->pid + rows,      out->tid + rows,
        out->cpu + rows,     out->addr + rows,     out->phys_addr ? out->phys_addr + rows : NULL,
        out->ip + rows,      out->is_write + rows, out->level + rows,
        out->latency + rows,
    };
}

/* Put the accesses among `count` samples out behind `done` others; returns how many. rows: room for `count`. */
static int64_t collect(const struct samples *samples, int64_t count, const struct collect *how, int64_t *rows,
                       int64_t done) {
    const struct accesses out = behind(&how->out, done);
    uint8_t *const codes = how->codes + done;
    perfdata_unrecorded(samples->pid, samples->tid, count, how->unrecorded);
    const int64_t found = choose(samples, count, &how->rules, rows, codes, how->facts);
    convert(samples, rows, codes, found, &how->rules, &how->levels, &out);
    add_periods(samples, rows, codes, found, how);
    return found;
}

int64_t perfdata_collect(const struct samples *samples, int64_t count, const struct collect *how, int64_t *rows) {
    return collect(samples, count, how, rows, 0);
}

/* Numbers of the columns that records are taken apart into. */
enum { TIME, PID, TID, CPU, IP, ADDR, PHYS_ADDR, PERIOD, WEIGHT, DATA_SRC, COLUMNS };

struct place {
    int64_t offset, width, column;
};

/* The same for records whose fields have fixed places, a few at a time so that they stay in the cache. events: of each
 * record, or NULL when all are the first. */
int64_t perfdata_extract(const uint8_t *base, const int64_t *positions, const uint8_t *modes, const int32_t *events,
                         int64_t count, const struct place *places, int64_t place_count, int swap,
                         const struct collect *how) {
    enum { BLOCK = 256 };
    static const int32_t first_event[BLOCK];
    uint64_t columns[COLUMNS][BLOCK];
    int64_t rows[BLOCK], found = 0;
    struct perfdata_field fields[COLUMNS];
    memset(columns, 0, sizeof columns); /* those that the records lack stay so */
    for (int64_t f = 0; f < place_count; f++)
        fields[f] = (struct perfdata_field){places[f].offset, places[f].width, columns[places[f].column]};
    for (int64_t start = 0; start < count; start += BLOCK) {
        const int64_t size = count - start < BLOCK ? count - start : BLOCK;
        const struct samples samples = {
            (const int64_t *)columns[TIME],
            (const int64_t *)columns[PID],
            (const int64_t *)columns[TID],
            (const int64_t *)columns[CPU],
            columns[IP],
            columns[ADDR],
            columns[PHYS_ADDR],
            columns[PERIOD],
            columns[WEIGHT],
            columns[DATA_SRC],
            events ? events + start : first_event,
            modes + start,
        };
        perfdata_gather(base, positions + start, NULL, size, fields, place_count, swap);
        found += collect(&samples, size, how, rows, found);
    }
    return found;
}
