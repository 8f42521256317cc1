/*
 * QEMU system-mode plugin: counts the memory accesses of user code by vcpu, task and node of the page.
 *
 * Only instructions in the user half of the address space carry a callback, so the kernel runs at QEMU's full
 * speed, but for a few of its instructions (kernel.c). The guest's agent commands the plugin through marks.h. Accesses
 * wider than 8 bytes are counted as QEMU performs them, in parts of at most 8. Those of loops that only wait are told
 * apart (polls.h).
 *
 * Arguments: directory=PATH, where `calibration` and `counts` are written; samples=PATH, memory shared with the guest
 * for the sampler (none: no samples); those of the cache model, if caches are to be modelled, and queued_at=OFFSET of a
 * task's sched_info.last_queued, if waiting for cpus is to be counted; turn=ACCESSES of a vcpu's turn (turns.h);
 * record=PERIOD, if the accesses are to be recorded in that directory; transfers=on, page_use=on, if they are to be counted
 * exactly too (exact.h), with llc_own=SIZES and runtime=PATH (runtime.h), in a part of the run (part.h): who could
 * run is then written down, too (running.h).
 */
#include "exact.h"
#include "kernel.h"
#include "marks.h"
#include "polls.h"
#include "recording.h"
#include "running.h"
#include "runtime.h"
#include "samples.h"
#include "sampling.h"
#include "sharing.h"
#include "turns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char directory[4000];
static bool calibrated;
static unsigned vcpus;
static uint64_t numbers[MARK_NUMBERS + 1]; /* of one sender, the agent */
static unsigned number_count;
static uint64_t probe_address, probe_physical;

/* One argument; false: not known, or wrong. */
static bool read_argument(char *text, const char **samples) {
    char *value = strchr(text, '=');
    if (!value) return false;
    *value++ = '\0';
    if (!strcmp(text, "samples")) return (*samples = value);
    if (!strcmp(text, "directory"))
        return (size_t)snprintf(directory, sizeof directory, "%s", value) < sizeof directory;
    if (!strcmp(text, "runtime")) return lab_runtime_open(value);
    if (!strcmp(text, "queued_at")) return (lab_kernel.queued_at = strtoul(value, NULL, 10));
    if (lab_recording_option(text, value) || lab_turns_option(text, value)) return true;
    if (lab_exact_option(text, value) || lab_part_option(text, value)) return true;
    if (!reach_option(text, value) && !caches_option(text, value)) return false;
    return lab_kernel.cached = true;
}

static FILE *open_output(const char *name) {
    char path[sizeof directory + 32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    if (!file) fprintf(stderr, "numaplan lab: cannot write %s\n", path);
    return file;
}

static void calibrate(void) {
    FILE *file = open_output("calibration");
    if (!file) return;
    calibrated = lab_nodes_calibrate(file);
    if (calibrated && lab_kernel.cached && !lab_lines_open(vcpus)) {
        fputs("no caches\n", file);
        calibrated = false;
    }
    if (calibrated && lab_kernel.queued_at && !lab_sharing_seen()) {
        fputs("no queues\n", file);
        calibrated = false;
    }
    fclose(file);
}

static void write_counts(void) {
    FILE *file = open_output("counts");
    if (!file) return;
    lab_rows_write(file);
    fclose(file);
}

static void finish_recording(void) {
    FILE *file = open_output("recorded");
    if (!file) return;
    lab_nodes_write(file);
    if (lab_kernel.cached) fprintf(file, "footprint %" PRIu64 "\n", lab_lines_footprint());
    int failed = lab_running_finish(), other = lab_exact_finish(directory);
    lab_recording_finish(file, failed ? failed : other);
    fclose(file);
}

static void command(unsigned vcpu, unsigned slot) {
    switch (slot) {
    case MARK_NUMBER_DONE:
        number_count = number_count < MARK_NUMBERS ? number_count + 1 : MARK_NUMBERS;
        numbers[number_count] = 0;
        return;
    case MARK_CPU:
        lab_rows_set_cpu(vcpu, (unsigned)numbers[0]);
        lab_lines_set_cpu(vcpu, (unsigned)numbers[0]);
        lab_sampling_set_cpu(vcpu, (unsigned)numbers[0]);
        lab_recording_set_cpu(vcpu, (unsigned)numbers[0]);
        break;
    case MARK_SPAN: lab_nodes_add_span(numbers[0], numbers[1], numbers[2]); break;
    case MARK_PROBE:
        probe_address = numbers[0];
        probe_physical = numbers[1];
        break;
    case MARK_CALIBRATED: calibrate(); break;
    case MARK_START:
        lab_rows_reset();
        lab_sharing_reset();
        if (lab_kernel.cached && calibrated) caches_empty(); /* so that every run finds the same */
        lab_kernel.counting =
            calibrated && (!lab_recording || (lab_recording_start(directory, vcpus) &&
                                              lab_exact_start(directory, vcpus) && lab_running_start(directory)));
        break;
    case MARK_EXCLUDE:
        lab_rows_exclude(lab_rows_current[vcpu]->task);
        lab_exact_switch(vcpu, lab_rows_current[vcpu]->task);
        break;
    case MARK_STAGE_CODE: lab_kernel_add_stage_code(numbers[0]); break;
    case MARK_SAMPLER: lab_sampling_answer(vcpu); break;
    case MARK_STOP:
        lab_kernel.counting = false;
        write_counts();
        if (lab_recording) finish_recording();
        break;
    default: numbers[number_count] = numbers[number_count] << 8 | slot; return;
    }
    number_count = 0;
    memset(numbers, 0, sizeof numbers);
}

/* An access for the recording: reads and writes of at most 8 bytes each, as the emulation has them. */
static inline void record(unsigned vcpu, qemu_plugin_meminfo_t info, const struct lab_recorded_access *access) {
    struct lab_row *row = lab_rows_current[vcpu];
    unsigned parts = qemu_access_parts(info);
    unsigned rw = qemu_access_rw(info), loads = rw & 1, stores = rw >> 1;
    row->loads += loads * parts;
    row->stores += stores * parts;
    for (unsigned part = 0; part < parts; part++) {
        if (loads && lab_recording_due(vcpu)) lab_recording_take(vcpu, access, 8 * part, false);
        if (stores && lab_recording_due(vcpu)) lab_recording_take(vcpu, access, 8 * part, true);
    }
}

/* own: by the program's code, not a runtime's. */
static inline __attribute__((always_inline)) void count(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address,
                                                        void *code, bool own) {
    struct qemu_plugin_hwaddr *page = qemu_plugin_get_hwaddr(info, address);
    uint64_t key = page ? lab_nodes_key(page) : 0;
    unsigned node = page ? lab_nodes_find(key) : NODE_UNKNOWN;
    uint64_t parts = qemu_access_parts(info);
    struct lab_row *row = lab_rows_current[vcpu];
    row->accesses[node] += parts;
    lab_sharing_access(vcpu, parts);
    lab_polls_access(row, node, parts);
    bool store = qemu_plugin_mem_is_store(info), exact = own && node != NODE_UNKNOWN && lab_exact_counts(vcpu, info);
    struct lab_answer answer = {.level = LEVEL_UNKNOWN};
    if (lab_kernel.cached && node != NODE_UNKNOWN) answer = lab_lines_access(vcpu, key, store, node);
    unsigned flags = (store ? SAMPLES_STORE : 0) | (lab_lines_inside(answer.level) ? SAMPLES_CACHED : 0);
    if (lab_sampling_due(vcpu, parts)) lab_sampling_take(vcpu, address, (uint64_t)(uintptr_t)code, flags, node);
    if (exact) lab_exact_access(vcpu, info, address, key, node, &answer);
    if (lab_recording)
        record(vcpu, info,
               &(struct lab_recorded_access){.task = lab_rows_current[vcpu]->task,
                                             .address = address,
                                             .physical = key,
                                             .code = (uint64_t)(uintptr_t)code,
                                             .node = (uint8_t)node,
                                             .level = (uint8_t)answer.level,
                                             .reach = answer.reach.sizes});
    if (lab_kernel.cached || lab_recording) lab_turns_access(vcpu, parts); /* else the order tells nothing */
}

/* A store behind MARK_PAGE. */
static void heard(unsigned vcpu, unsigned byte) {
    if (byte < MARK_PAGE_BYTES) command(vcpu, byte / MARK_SLOT_BYTES);
    else if (lab_kernel.counting) lab_exact_told(vcpu, byte - MARK_PAGE_BYTES);
}

static inline __attribute__((always_inline)) void access_by(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address,
                                                            void *code, bool own) {
    /* A user instruction that traps can leave its callback armed for what the kernel does next (QEMU 7.2). */
    if (__builtin_expect(address >= KERNEL_HALF, 0)) return;
    if (__builtin_expect(address - MARK_PAGE < MARK_PAGE_BYTES + MARK_TOLD_BYTES, 0)) {
        if (qemu_plugin_mem_is_store(info)) heard(vcpu, (unsigned)(address - MARK_PAGE));
    } else if (__builtin_expect(lab_kernel.counting, 1)) {
        count(vcpu, info, address, code, own);
    } else if (__builtin_expect(address == probe_address && !calibrated, 0)) {
        lab_nodes_add_probe(probe_physical, qemu_plugin_get_hwaddr(info, address));
        probe_address = 0;
    }
}

static void at_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *code) {
    access_by(vcpu, info, address, code, true);
}

static void at_runtime_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *code) {
    access_by(vcpu, info, address, code, false);
}

static void at_translation(struct qemu_plugin_tb *block) {
    size_t instructions = qemu_plugin_tb_n_insns(block);
    uint64_t address = qemu_plugin_tb_vaddr(block);
    struct lab_runtime_page page = {0};
    if (address >= KERNEL_HALF) {
        lab_kernel_watch(block, instructions);
        return;
    }
    if (!calibrated && address < MARK_BOOT_CODE_END) return;
    lab_polls_watch(block, instructions);
    for (size_t i = 0; i < instructions; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        bool runtime = lab_runtime_code(&page, qemu_plugin_insn_haddr(instruction));
        qemu_plugin_register_vcpu_mem_cb(instruction, runtime ? at_runtime_access : at_access, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, (void *)(uintptr_t)qemu_plugin_insn_vaddr(instruction));
    }
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv) {
    const char *samples = NULL;
    lab_kernel.api = info->version.cur;
    for (int i = 0; i < argc; i++)
        if (!read_argument(argv[i], &samples)) {
            fprintf(stderr, "numaplan lab: argument '%s' is not valid\n", argv[i]);
            return -1;
        }
    if (!directory[0] || !info->system_emulation || !qemu_info_is_known() || info->system.max_vcpus > VCPUS_MAX) {
        fprintf(stderr, "numaplan lab: needs directory=PATH, system emulation and at most %d vcpus\n", VCPUS_MAX);
        return -1;
    }
    vcpus = (unsigned)info->system.max_vcpus;
    if ((lab_kernel.cached && !caches_settle()) || !lab_rows_open(vcpus, lab_kernel.cached)) return -1;
    lab_sharing_open(vcpus);
    if (samples && !lab_sampling_open(samples, vcpus)) {
        fprintf(stderr, "numaplan lab: cannot use %s for samples\n", samples);
        return -1;
    }
    qemu_on_translation(id, at_translation);
    return 0;
}
