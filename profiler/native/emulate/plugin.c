/* QEMU's side: options, translation, and the callbacks every access runs through (calls.c: every system call). */
#include "emulate.h"
#include "qemu_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_API;
static int api; /* of the QEMU that runs */

struct options options = {.period = 1, .turn = 1000, .seed = 1, .cached = true, .fair = true, .inclusive = true};

#define READS(info) ((info) >> 16 & 1)  /* checked in qemu_plugin_install */
#define WRITES(info) ((info) >> 17 & 1) /* both for an atomic read-modify-write */
#define RW(info) ((info) >> 16 & 3)
#define INSTRUCTION_MAX 16 /* bytes; no architecture has longer ones */

/* Book what was done since the last decision. */
void settle(struct thread *t)
{
    int64_t done = t->granted - t->budget;
    t->turn_left -= done;
    t->gap_left -= done;
    t->position += done;
    t->idle = 0;
    t->granted = t->budget = 0;
}

/* Let others go first, in the middle of a block. */
static void step_aside(struct thread *t)
{
    settle(t);
    if (options.fair)
        turn_pass(t);
    else
        turn_release(t, false);
}

static void sample(struct thread *t, unsigned rw, uint64_t addr, uint64_t ip, enum level level)
{
    if (rw & QEMU_PLUGIN_MEM_R)
        spool_sample(t, addr, ip, false, level);
    if (rw == QEMU_PLUGIN_MEM_RW) {
        t->position++;
        level = options.cached ? LEVEL_L1 : LEVEL_UNKNOWN;
    }
    if (rw & QEMU_PLUGIN_MEM_W)
        spool_sample(t, addr, ip, true, level);
    t->gap_left = 1;
    for (int draws = 0; draws < 2 && options.period > 1; draws++) /* mean: the period */
        t->gap_left += (int64_t)(next_random(&t->random) % options.period);
}

static inline bool first_way_hits(const struct thread *t, uint64_t line, bool store)
{
    uint64_t first = t->l1[(line & (options.l1_sets - 1)) << options.l1_shift];
    return (first ^ (line << 1 | 1)) <= (uint64_t)!store;
}

static void decide(struct thread *t, unsigned rw, uint64_t addr, uint64_t ip)
{
    enum level level = LEVEL_UNKNOWN;
    uint64_t line = addr >> LINE_SHIFT;
    t->record.loads += READS(rw << 16);
    t->record.stores += WRITES(rw << 16);
    t->turn_left--;
    t->position++;
    if (options.cached)
        level = first_way_hits(t, line, rw >> 1) ? LEVEL_L1 : cache_miss(t, line, rw >> 1);
    if (--t->gap_left <= 0)
        sample(t, rw, addr, ip, level);
}

static void put_aside(struct thread *t, unsigned rw, uint64_t addr, uint64_t ip)
{
    if (t->late_count == t->late_room) {
        uint32_t room = t->late_room ? t->late_room * 2 : 256;
        struct late_access *grown = realloc(t->late, room * sizeof *grown);
        if (grown == NULL) {
            t->record.lost++;
            return;
        }
        t->late = grown;
        t->late_room = room;
    }
    t->late[t->late_count++] = (struct late_access){addr, ip, rw};
}

void catch_up(struct thread *t)
{
    for (uint32_t i = 0; i < t->late_count; i++)
        decide(t, t->late[i].rw, t->late[i].addr, t->late[i].ip);
    t->late_count = 0;
}

/* An access with something to decide: not yet met, no turn, the turn's end, a sample. */
static __attribute__((noinline)) void slow_access(unsigned vcpu, uint32_t info, uint64_t addr, void *ip)
{
    struct thread *t = thread_self(vcpu);
    t->budget = t->budget < 0 ? 0 : t->budget;
    settle(t);
    if (unlikely(!t->holding || t->turn_left <= 0)) {
        if (!(t->holding ? turn_pass(t) : turn_take(t, false))) {
            put_aside(t, RW(info), addr, (uint64_t)ip);
            return;
        }
        if (unlikely(t->late_count))
            catch_up(t);
    }
    decide(t, RW(info), addr, (uint64_t)ip);
    int64_t free_run = t->turn_left < t->gap_left - 1 ? t->turn_left : t->gap_left - 1;
    t->budget = t->granted = free_run > 0 ? free_run : 0;
}

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *ip)
{
    struct thread *t = self;
    if (unlikely(--t->budget < 0)) {
        slow_access(vcpu, info, addr, ip);
        return;
    }
    t->record.loads += READS(info);
    t->record.stores += WRITES(info);
}

static void on_cached_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *ip)
{
    struct thread *t = self;
    if (unlikely(--t->budget < 0)) {
        slow_access(vcpu, info, addr, ip);
        return;
    }
    t->record.loads += READS(info);
    t->record.stores += WRITES(info);
    if (unlikely(!first_way_hits(t, addr >> LINE_SHIFT, WRITES(info))))
        cache_miss(t, addr >> LINE_SHIFT, WRITES(info));
}

/* A block that may run for ever without an access must not do so with the turn in hand. */
static void on_idle_block(unsigned vcpu, void *instructions)
{
    struct thread *t = self;
    (void)vcpu;
    t->idle += (int64_t)(intptr_t)instructions;
    if (unlikely(t->idle > (int64_t)options.turn * 2)) {
        t->idle = 0;
        if (t->holding && turn_wanted())
            step_aside(t);
    }
}

static void on_spin(unsigned vcpu, void *unused)
{
    struct thread *t = self;
    (void)vcpu, (void)unused;
    if (t->holding && turn_wanted()) {
        t->spinning = true;
        step_aside(t);
    }
}

static void on_birth(qemu_plugin_id_t id, unsigned vcpu)
{
    (void)id;
    thread_born(vcpu);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    qemu_mem_cb on_memory = options.cached ? on_cached_access : on_access;
    size_t count = qemu_plugin_tb_n_insns(tb);
    bool accesses = !options.fair;
    (void)id;
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint8_t code[INSTRUCTION_MAX] = {0};
        size_t bytes = qemu_insn_code(insn, code, sizeof code, api);
        void *ip = (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn);
        qemu_plugin_register_vcpu_mem_cb(insn, on_memory, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, ip);
        accesses = accesses || guest_surely_accesses(code, bytes);
        if (options.fair && guest_spins(code, bytes))
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_spin, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
    if (!accesses)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, on_idle_block, QEMU_PLUGIN_CB_NO_REGS, (void *)(intptr_t)count);
}

/* `NUMBER:NUMBER:…`, one a cpu; how many, 0 when it is none. */
static uint32_t read_numbers(const char *text, uint32_t **numbers)
{
    uint32_t count = 0;
    *numbers = calloc(strlen(text) / 2 + 1, sizeof **numbers);
    if (*numbers == NULL)
        return 0;
    for (char *end; *text; text = *end ? end + 1 : end) {
        uint32_t number = (uint32_t)strtoul(text, &end, 10);
        if (end == text || number >= 0x7fff)
            return 0;
        (*numbers)[count++] = number;
    }
    return count;
}

/* Which L3s there are, and their nodes; without a list of them, one a node. */
static bool settle_domains(uint32_t listed)
{
    if (options.cpu_domains == NULL)
        options.cpu_domains = options.cpu_nodes, listed = options.cpus;
    if (options.cpus == 0 || listed != options.cpus)
        return false;
    for (uint32_t i = 0; i < options.cpus; i++)
        if (options.cpu_domains[i] >= options.domains)
            options.domains = options.cpu_domains[i] + 1;
    options.domain_nodes = calloc(options.domains, sizeof *options.domain_nodes);
    for (uint32_t i = 0; options.domain_nodes && i < options.cpus; i++)
        options.domain_nodes[options.cpu_domains[i]] = options.cpu_nodes[i];
    return options.domain_nodes;
}

static bool read_cache(const char *text, uint32_t *sets, uint32_t *ways)
{
    return sscanf(text, "%u:%u", sets, ways) == 2 && *sets > 0 && !(*sets & (*sets - 1)) && *ways > 0 && *ways <= 32;
}

static uint32_t domains_listed;

static bool read_option(char *text)
{
    char *value = strchr(text, '=');
    if (value == NULL)
        return false;
    *value++ = '\0';
    if (!strcmp(text, "dir"))
        return (size_t)snprintf(options.dir, sizeof options.dir, "%s", value) < sizeof options.dir;
    if (!strcmp(text, "period"))
        return (options.period = strtoull(value, NULL, 10)) > 0;
    if (!strcmp(text, "turn"))
        return (options.turn = strtoull(value, NULL, 10)) > 0;
    if (!strcmp(text, "seed"))
        return options.seed = strtoull(value, NULL, 10), true;
    if (!strcmp(text, "cache"))
        return options.cached = !strcmp(value, "on"), true;
    if (!strcmp(text, "schedule"))
        return options.fair = !strcmp(value, "fair"), true;
    if (!strcmp(text, "cpus"))
        return (options.cpus = read_numbers(value, &options.cpu_nodes)) > 0;
    if (!strcmp(text, "domains"))
        return (domains_listed = read_numbers(value, &options.cpu_domains)) > 0;
    if (!strcmp(text, "l3_inclusive"))
        return options.inclusive = !strcmp(value, "yes"), true;
    if (!strcmp(text, "l1"))
        return read_cache(value, &options.l1_sets, &options.l1_ways);
    if (!strcmp(text, "l2"))
        return read_cache(value, &options.l2_sets, &options.l2_ways);
    return !strcmp(text, "l3") && read_cache(value, &options.l3_sets, &options.l3_ways);
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
    const uint32_t r = QEMU_PLUGIN_MEM_R << 16, w = QEMU_PLUGIN_MEM_W << 16;
    api = info->version.cur;
    if (info->system_emulation || info->version.min > QEMU_PLUGIN_API || info->version.cur < QEMU_PLUGIN_API ||
        qemu_plugin_mem_is_store(r) || !qemu_plugin_mem_is_store(w) || !qemu_plugin_mem_is_store(r | w)) {
        fprintf(stderr, "numaplan: this QEMU's plugin interface is not the one known\n");
        return 1;
    }
    for (int i = 0; i < argc; i++)
        if (!read_option(argv[i])) {
            fprintf(stderr, "numaplan: emulation option '%s' is not valid\n", argv[i]);
            return 1;
        }
    if (!settle_domains(domains_listed)) {
        fprintf(stderr, "numaplan: emulation options 'cpus' and 'domains' do not fit\n");
        return 1;
    }
    while (1u << options.l1_shift < options.l1_ways)
        options.l1_shift++;
    guest_select(info->target_name);
    turns_reset();
    if (!threads_init() || (options.cached && !cache_init()))
        return 1;
    qemu_plugin_register_vcpu_init_cb(id, on_birth);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_return);
    return 0;
}
