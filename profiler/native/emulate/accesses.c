/* The path of an access: it is counted, sampled, and given a level by the cache model. */
#include "emulate.h"
#include "qemu_plugin.h"

#include <stdlib.h>

#define READS(info) ((info) >> 16 & 1)  /* checked in qemu_plugin_install */
#define WRITES(info) ((info) >> 17 & 1) /* both for an atomic read-modify-write */
#define RW(info) ((info) >> 16 & 3)

/* Book what was done since the last decision. */
void em_settle(struct em_thread *t) {
    int64_t done = t->granted - t->budget;
    t->turn_left -= done;
    t->gap_left -= done;
    t->position += done;
    t->idle = 0;
    t->granted = t->budget = 0;
}

/* Let others go first, in the middle of a block. */
static void step_aside(struct em_thread *t) {
    em_settle(t);
    if (em_options.fair) em_turn_pass(t);
    else em_turn_release(t, false);
}

/* An access that the L1's most recent line does not answer; sharing: by code whose transfers count. */
static inline enum cache_level beyond(struct em_thread *t, uint64_t line, bool store, bool sharing,
                                      struct reach *reach) {
    uint64_t before = t->record.caches.l1_misses;
    enum cache_level level = reach_miss(&t->reach, &t->core, line, store, reach);
    /* What an L1 has, its thread has had since the last write by others. */
    if (sharing && (store || t->record.caches.l1_misses != before)) {
        caches_lock();
        em_transfer(t, line, store);
        caches_unlock();
    }
    return level;
}

static void sample(struct em_thread *t, unsigned rw, uint64_t addr, uint64_t ip, enum cache_level level,
                   struct reach reach) {
    if (rw & QEMU_PLUGIN_MEM_R) em_spool_sample(t, addr, ip, false, level, reach);
    if (rw == QEMU_PLUGIN_MEM_RW) {
        t->position++;
        level = em_options.cached ? LEVEL_L1 : LEVEL_UNKNOWN;
        reach = (struct reach){0};
    }
    if (rw & QEMU_PLUGIN_MEM_W) em_spool_sample(t, addr, ip, true, level, reach);
    t->gap_left = 1;
    for (int draws = 0; draws < 2 && em_options.period > 1; draws++) /* mean: the period */
        t->gap_left += (int64_t)(em_next_random(&t->random) % em_options.period);
}

static void decide(struct em_thread *t, unsigned rw, uint64_t addr, uint64_t ip, bool sharing) {
    enum cache_level level = LEVEL_UNKNOWN;
    struct reach reach = {0};
    uint64_t line = addr >> LINE_SHIFT;
    t->record.loads += READS(rw << 16);
    t->record.stores += WRITES(rw << 16);
    t->turn_left--;
    t->position++;
    if (em_options.cached)
        level = caches_hit(&t->core, line, rw >> 1) ? LEVEL_L1 : beyond(t, line, rw >> 1, sharing, &reach);
    if (--t->gap_left <= 0) sample(t, rw, addr, ip, level, reach);
}

static void put_aside(struct em_thread *t, unsigned rw, uint64_t addr, uint64_t ip, bool sharing) {
    if (t->late_count == t->late_room) {
        uint32_t room = t->late_room ? t->late_room * 2 : 256;
        struct em_late_access *grown = realloc(t->late, room * sizeof *grown);
        if (grown == NULL) {
            t->record.lost++;
            return;
        }
        t->late = grown;
        t->late_room = room;
    }
    t->late[t->late_count++] = (struct em_late_access){addr, ip, rw, sharing};
}

void em_catch_up(struct em_thread *t) {
    for (uint32_t i = 0; i < t->late_count; i++)
        decide(t, t->late[i].rw, t->late[i].addr, t->late[i].ip, t->late[i].sharing);
    t->late_count = 0;
}

/* An access with something to decide: not yet met, no turn, the turn's end, a sample. */
static __attribute__((noinline)) void slow_access(unsigned vcpu, uint32_t info, uint64_t addr, void *ip, bool sharing) {
    struct em_thread *t = em_thread_self(vcpu);
    t->budget = t->budget < 0 ? 0 : t->budget;
    em_settle(t);
    if (unlikely(!t->holding || t->turn_left <= 0)) {
        em_part_check();
        if (unlikely(em_part_over())) return;
        if (!(t->holding ? em_turn_pass(t) : em_turn_take(t, false))) {
            put_aside(t, RW(info), addr, (uint64_t)ip, sharing);
            return;
        }
        if (unlikely(t->late_count)) em_catch_up(t);
    }
    decide(t, RW(info), addr, (uint64_t)ip, sharing);
    int64_t free_run = t->turn_left < t->gap_left - 1 ? t->turn_left : t->gap_left - 1;
    t->budget = t->granted = free_run > 0 ? free_run : 0;
}

static inline void access_once(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *ip) {
    struct em_thread *t = em_self;
    if (unlikely(--t->budget < 0)) {
        slow_access(vcpu, info, addr, ip, false);
        return;
    }
    t->record.loads += READS(info);
    t->record.stores += WRITES(info);
}

static inline __attribute__((always_inline)) void cached_access_once(unsigned vcpu, qemu_plugin_meminfo_t info,
                                                                     uint64_t addr, void *ip, bool sharing) {
    struct em_thread *t = em_self;
    if (unlikely(--t->budget < 0)) {
        slow_access(vcpu, info, addr, ip, sharing);
        return;
    }
    t->record.loads += READS(info);
    t->record.stores += WRITES(info);
    struct reach reach;
    if (unlikely(!caches_hit(&t->core, addr >> LINE_SHIFT, WRITES(info))))
        beyond(t, addr >> LINE_SHIFT, WRITES(info), sharing, &reach);
}

void em_on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *ip) {
    access_once(vcpu, info, addr, ip);
    for (unsigned part = 1; unlikely(part < qemu_access_parts(info)); part++)
        access_once(vcpu, info, addr + 8 * part, ip);
}

static inline __attribute__((always_inline)) void cached_access(unsigned vcpu, qemu_plugin_meminfo_t info,
                                                                uint64_t addr, void *ip, bool sharing) {
    cached_access_once(vcpu, info, addr, ip, sharing);
    for (unsigned part = 1; unlikely(part < qemu_access_parts(info)); part++)
        cached_access_once(vcpu, info, addr + 8 * part, ip, sharing);
}

void em_on_cached_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *ip) {
    cached_access(vcpu, info, addr, ip, false);
}

/* By code of which it is counted who takes lines from whom. */
void em_on_sharing_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *ip) {
    cached_access(vcpu, info, addr, ip, true);
}

/* A block that may run for ever without an access must not do so with the turn in hand. */
void em_on_idle_block(unsigned vcpu, void *instructions) {
    struct em_thread *t = em_self;
    (void)vcpu;
    t->idle += (int64_t)(intptr_t)instructions;
    if (unlikely(t->idle > (int64_t)em_options.turn * 2)) {
        t->idle = 0;
        if (t->holding && em_turn_wanted()) step_aside(t);
    }
}

void em_on_spin(unsigned vcpu, void *unused) {
    struct em_thread *t = em_self;
    (void)vcpu, (void)unused;
    if (t->holding && em_turn_wanted()) {
        t->spinning = true;
        step_aside(t);
    }
}
