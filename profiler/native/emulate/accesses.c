/* The path of an access: it is counted, sampled, and given a level by the cache model. */
#include "emulate.h"
#include "frames.h"
#include "qemu_plugin.h"

#include <stdlib.h>

#define WRITES(info) ((info) >> 17 & 1) /* checked in qemu_plugin_install */

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

static inline bool l1_has(struct em_thread *t, uint64_t addr, bool store) {
    uint64_t line = addr >> LINE_SHIFT;
    return caches_hit(&t->core, line, store) || caches_hit_later(&t->core, line, store);
}

/* An access that the L1 does not answer by itself; counts: what is counted of it. */
static inline enum cache_level beyond(struct em_thread *t, uint64_t addr, bool store, unsigned counts,
                                      struct reach *reach) {
    uint64_t line = addr >> LINE_SHIFT, before = t->record.caches.l1_misses;
    enum cache_level level = reach_miss(&t->reach, &t->core, line, store, reach);
    bool missed = t->record.caches.l1_misses != before;
    /* What an L1 has, its thread has had since the last write by others. */
    if (counts & COUNT_TRANSFERS && (store || missed)) {
        caches_lock();
        em_transfer(t, line, store);
        caches_unlock();
    }
    if (counts & COUNT_USES && missed)
        if (t->reach.epoch ? reach->sizes >= em_options.llc_own : level == LEVEL_LOCAL || level == LEVEL_REMOTE)
            em_use(t, addr)->missed++;
    return level;
}

static inline void count_use(struct page_use *use, unsigned rw) {
    use->made[rw >> 1]++;
    if (unlikely(rw == 3)) use->made[0]++;
}

static inline void count_access(struct em_thread *t, unsigned rw) {
    t->record.made[rw >> 1]++;
    if (unlikely(rw == 3)) t->record.made[0]++;
}

static void sample(struct em_thread *t, unsigned rw, uint64_t addr, uint64_t ip, enum cache_level level,
                   struct reach reach) {
    uint32_t call = em_frames_innermost(t->frames);
    if (rw & QEMU_PLUGIN_MEM_R) em_spool_sample(t, addr, ip, call, false, level, reach);
    if (rw == QEMU_PLUGIN_MEM_RW) {
        t->position++;
        level = em_options.cached ? LEVEL_L1 : LEVEL_UNKNOWN;
        reach = (struct reach){0};
    }
    if (rw & QEMU_PLUGIN_MEM_W) em_spool_sample(t, addr, ip, call, true, level, reach);
    t->gap_left = 1;
    for (int draws = 0; draws < 2 && em_options.period > 1; draws++) /* mean: the period */
        t->gap_left += (int64_t)(em_next_random(&t->random) % em_options.period);
}

static void decide(struct em_thread *t, unsigned rw, uint64_t addr, uint64_t ip, unsigned counts) {
    enum cache_level level = LEVEL_UNKNOWN;
    struct reach reach = {0};
    count_access(t, rw);
    if (em_options.uses) em_uses_check(t);
    if (counts & COUNT_USES) count_use(em_use(t, addr), rw);
    t->turn_left--;
    t->position++;
    if (em_options.cached) level = l1_has(t, addr, rw >> 1) ? LEVEL_L1 : beyond(t, addr, rw >> 1, counts, &reach);
    if (--t->gap_left <= 0) sample(t, rw, addr, ip, level, reach);
}

static void put_aside(struct em_thread *t, unsigned rw, uint64_t addr, uint64_t ip, unsigned counts) {
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
    t->late[t->late_count++] = (struct em_late_access){addr, ip, rw, counts};
}

void em_catch_up(struct em_thread *t) {
    struct em_frames *now = t->frames;
    t->frames = NULL; /* they may be of other calls */
    for (uint32_t i = 0; i < t->late_count; i++)
        decide(t, t->late[i].rw, t->late[i].addr, t->late[i].ip, t->late[i].counts);
    t->late_count = 0;
    t->frames = now;
}

/* An access with something to decide: not yet met, no turn, the turn's end, a sample. */
static __attribute__((noinline)) void slow_access(unsigned vcpu, uint32_t info, uint64_t addr, void *ip,
                                                  unsigned counts) {
    struct em_thread *t = em_thread_self(vcpu);
    t->budget = t->budget < 0 ? 0 : t->budget;
    em_settle(t);
    if (unlikely(!t->holding || t->turn_left <= 0)) {
        em_part_check();
        if (unlikely(em_part_over())) return;
        if (!(t->holding ? em_turn_pass(t) : em_turn_take(t, false))) {
            put_aside(t, qemu_access_rw(info), addr, (uint64_t)ip, counts);
            return;
        }
        if (unlikely(t->late_count)) em_catch_up(t);
    }
    decide(t, qemu_access_rw(info), addr, (uint64_t)ip, counts);
    int64_t free_run = t->turn_left < t->gap_left - 1 ? t->turn_left : t->gap_left - 1;
    t->budget = t->granted = free_run > 0 ? free_run : 0;
}

/* One of at most 8 bytes. */
static inline __attribute__((always_inline)) void access_once(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr,
                                                              void *ip, bool cached, unsigned counts) {
    struct em_thread *t = em_self;
    if (unlikely(--t->budget < 0)) {
        slow_access(vcpu, info, addr, ip, counts);
        return;
    }
    count_access(t, qemu_access_rw(info));
    if (counts & COUNT_USES) count_use(em_use(t, addr), qemu_access_rw(info));
    struct reach reach = {0};
    if (cached && !l1_has(t, addr, WRITES(info))) beyond(t, addr, WRITES(info), counts, &reach);
}

/* What QEMU calls at an access, for each thing that may be counted of it. It calls nothing itself where there is nothing
 * to decide or to look for: then it saves no registers. */
#define CALLBACK(name, cached, counts)                                                                         \
    static __attribute__((noinline)) void name##_any(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, \
                                                     void *ip) {                                               \
        for (unsigned part = 0; part < qemu_access_parts(info); part++)                                        \
            access_once(vcpu, info, addr + 8 * part, ip, cached, counts);                                      \
    }                                                                                                          \
    static void name(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *ip) {                     \
        struct em_thread *t = em_self;                                                                         \
        const struct em_recent_use *recent = em_recent_use(t, addr);                                           \
        bool usual = qemu_access_parts(info) == 1 && t->budget > 0 &&                                          \
                     (!((counts) & COUNT_USES) || recent->number == (addr >> PAGE_SHIFT) + 1) &&               \
                     (!(cached) || caches_hit_two(&t->core, addr >> LINE_SHIFT, WRITES(info)));                \
        if (unlikely(!usual)) {                                                                                \
            name##_any(vcpu, info, addr, ip);                                                                  \
            return;                                                                                            \
        }                                                                                                      \
        t->budget--;                                                                                           \
        count_access(t, qemu_access_rw(info));                                                                 \
        if ((counts) & COUNT_USES) count_use(recent->use, qemu_access_rw(info));                               \
    }
CALLBACK(on_access, false, 0)
CALLBACK(on_used, false, COUNT_USES)
CALLBACK(on_cached, true, 0)
CALLBACK(on_cached_shared, true, COUNT_TRANSFERS)
CALLBACK(on_cached_used, true, COUNT_USES)
CALLBACK(on_cached_shared_used, true, COUNT_TRANSFERS | COUNT_USES)

em_memory_callback *em_access_callback(unsigned counts) {
    static em_memory_callback *const cached[] = {on_cached, on_cached_shared, on_cached_used, on_cached_shared_used};
    if (em_options.cached) return cached[counts];
    return counts & COUNT_USES ? on_used : on_access;
}

/* The access of a call or return, and what it tells. word: the instruction's address, and what is counted of it. */
#define IP_BITS 48
#define IP_OF(word) ((uint64_t)(word) & ((UINT64_C(1) << IP_BITS) - 1))

static void on_call(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *word) {
    em_access_callback((unsigned)((uint64_t)word >> IP_BITS))(vcpu, info, addr, (void *)IP_OF(word));
    if (WRITES(info)) em_frames_called(em_self->frames, addr, IP_OF(word));
}

static void on_return(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *word) {
    em_access_callback((unsigned)((uint64_t)word >> IP_BITS))(vcpu, info, addr, (void *)IP_OF(word));
    em_frames_returned(em_self->frames, addr);
}

/* What is called for accesses by an instruction that is a call or return, and the word that it is given. */
em_memory_callback *em_jump_callback(enum em_jump jump, uint64_t ip, unsigned counts, void **word) {
    *word = (void *)(uintptr_t)(IP_OF(ip) | (uint64_t)counts << IP_BITS);
    return jump == JUMP_CALL ? on_call : on_return;
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
