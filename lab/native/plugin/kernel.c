#include "kernel.h"

#include "exact.h"
#include "lines.h"
#include "recording.h"
#include "sampling.h"
#include "sharing.h"

#include <string.h>

#define STAGE_CODES 4
#define TASK_ALIGNMENT 64 /* a line of a cache */

struct lab_kernel lab_kernel;

static uint64_t stage_code[STAGE_CODES];
static unsigned stage_code_count;

void lab_kernel_add_stage_code(uint64_t address) {
    if (stage_code_count < STAGE_CODES) stage_code[stage_code_count++] = address;
}

static void at_switch(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *offset) {
    (void)info;
    uint64_t task = address - (uint64_t)(uintptr_t)offset;
    if (lab_kernel.queued_at) lab_sharing_leave(vcpu);
    lab_rows_switch(vcpu, task);
    if (lab_kernel.cached) lab_lines_switch(vcpu);
    if (lab_kernel.queued_at) lab_sharing_enter(vcpu);
    lab_sampling_switch(vcpu, task);
    lab_exact_switch(vcpu, task);
}

/*
 * The kernel changes stacks in one place (__switch_to_asm) by
 *     mov %rsp, OFFSET(%rdi); mov OFFSET(%rsi), %rsp
 * where rsi is the next task. True for the second of the two; stores OFFSET.
 */
static bool is_switch(const struct qemu_plugin_insn *first, const struct qemu_plugin_insn *second, int32_t *offset) {
    static const unsigned char save[] = {0x48, 0x89, 0xa7}, load[] = {0x48, 0x8b, 0xa6};
    const size_t bytes = sizeof save + sizeof *offset;
    unsigned char a[sizeof save + sizeof *offset], b[sizeof a];
    if (qemu_insn_code(second, b, sizeof b, lab_kernel.api) != bytes ||
        qemu_insn_code(first, a, sizeof a, lab_kernel.api) != bytes)
        return false;
    if (memcmp(a, save, sizeof save) || memcmp(b, load, sizeof load) || memcmp(a + 3, b + 3, sizeof *offset))
        return false;
    memcpy(offset, b + sizeof load, sizeof *offset);
    return true;
}

/*
 * What the kernel stores at one offset of tasks, and nearly nowhere else: mov %REGISTER, OFFSET(%TASK) the time from
 * which one waits for a cpu, movq $0, OFFSET(%TASK) that it does no more.
 */
static void at_queued(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *taken_out) {
    uint64_t task = address - lab_kernel.queued_at;
    if (!qemu_plugin_mem_is_store(info) || task % TASK_ALIGNMENT) return;
    if (taken_out) lab_sharing_unqueue(task);
    else lab_sharing_queue(vcpu, task);
}

/* Whether an instruction is one of these two: REX.W, the operation, a register and 32 bits from it; zero: the second. */
static bool notes_queue(const struct qemu_plugin_insn *instruction, bool *zero) {
    unsigned char code[12] = {0};
    int32_t offset, value = 0;
    size_t bytes = qemu_insn_code(instruction, code, sizeof code, lab_kernel.api);
    bool more = (code[2] & 7) == 4; /* a byte behind names the register: no other one is added */
    size_t at = more ? 4 : 3;
    *zero = code[1] == 0xc7;
    if (bytes != at + sizeof offset * (*zero ? 2 : 1) || (code[0] & 0xf8) != 0x48 || (!*zero && code[1] != 0x89) ||
        code[2] >> 6 != 2 || (more && code[3] != 0x24))
        return false;
    memcpy(&offset, code + at, sizeof offset);
    if (*zero) memcpy(&value, code + at + sizeof offset, sizeof value);
    return offset == (int32_t)lab_kernel.queued_at && value == 0;
}

static void watch_queues(const struct qemu_plugin_tb *block, size_t instructions) {
    bool zero;
    for (size_t i = 0; i < instructions; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        if (notes_queue(instruction, &zero))
            qemu_plugin_register_vcpu_mem_cb(instruction, at_queued, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                             (void *)(uintptr_t)zero);
    }
}

static void at_stage_end(unsigned vcpu, void *unused) {
    (void)unused;
    if (!lab_kernel.counting) return;
    if (lab_kernel.queued_at) lab_sharing_leave(vcpu);
    lab_rows_end_stage(vcpu);
    if (lab_kernel.queued_at) lab_sharing_enter(vcpu);
    lab_exact_end_stage(vcpu);
}

static void watch_stages(const struct qemu_plugin_tb *block, size_t instructions) {
    for (size_t i = 0; stage_code_count && i < instructions; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        for (unsigned code = 0; code < stage_code_count; code++)
            if (qemu_plugin_insn_vaddr(instruction) == stage_code[code])
                qemu_plugin_register_vcpu_insn_exec_cb(instruction, at_stage_end, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
}

static void watch_switch(const struct qemu_plugin_tb *block, size_t instructions) {
    int32_t offset;
    for (size_t i = 1; i < instructions; i++) {
        struct qemu_plugin_insn *second = qemu_plugin_tb_get_insn(block, i);
        if (is_switch(qemu_plugin_tb_get_insn(block, i - 1), second, &offset))
            /* RW: asked for reads only, QEMU 7.2 never calls. */
            qemu_plugin_register_vcpu_mem_cb(second, at_switch, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                             (void *)(intptr_t)offset);
    }
}

/* The kernel clears or copies a page by one instruction, or (from Linux 6.11 on, to move a page) by the loop of its
 * memcpy: those that it gives to a program, which it has not had before, and those that it moves to another node among
 * them. What a program reads and writes it copies the same way. clears: rep stos; else rep movs. */
static bool repeats(const struct qemu_plugin_insn *instruction, bool *clears) {
    unsigned char code[4] = {0};
    size_t bytes = qemu_insn_code(instruction, code, sizeof code, lab_kernel.api);
    unsigned char what = bytes == 2 ? code[1] : bytes == 3 && code[1] == 0x48 ? code[2] : 0;
    *clears = what == 0xaa || what == 0xab;
    return code[0] == 0xf3 && (*clears || what == 0xa4 || what == 0xa5);
}

/* mov (%rsi), %r8; mov 8(%rsi), %r9: the loop's first read; mov %r8, (%rdi); mov %r9, 8(%rdi): its first write. */
static bool copies(const struct qemu_plugin_insn *first, const struct qemu_plugin_insn *second) {
    unsigned char a[4] = {0}, b[4] = {0};
    if (qemu_insn_code(first, a, sizeof a, lab_kernel.api) != 3 ||
        qemu_insn_code(second, b, sizeof b, lab_kernel.api) != 4 || a[0] != 0x4c || b[0] != 0x4c || b[3] != 8)
        return false;
    return (a[1] == 0x8b && a[2] == 0x06 && b[1] == 0x8b && b[2] == 0x4e) ||
           (a[1] == 0x89 && a[2] == 0x07 && b[1] == 0x89 && b[2] == 0x4f);
}

static uint64_t copied[VCPUS_MAX]; /* key of the page of which a vcpu now reads the first word, + 1 */
static struct buffer { /* where a vcpu goes on in a program's memory */
    uint64_t next, line;
} buffers[VCPUS_MAX];

/* It copies to what a program reads into (read, recv), or from what it writes (write, send), a few bytes at a time: of
 * each line it is told once, unless another cpu has taken it since. */
static void at_buffer(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, bool store) {
    struct buffer *at = &buffers[vcpu];
    uint64_t last = address + (UINT64_C(1) << qemu_plugin_mem_size_shift(info)) - 1;
    bool told = address == at->next && last >> LINE_SHIFT == (address - 1) >> LINE_SHIFT;
    at->next = last + 1;
    if (!lab_kernel.counting || (told && (!lab_kernel.cached || lab_lines_has(vcpu, at->line, store)))) return;
    struct qemu_plugin_hwaddr *page = qemu_plugin_get_hwaddr(info, last);
    uint64_t key = page ? lab_nodes_key(page) : 0;
    unsigned node = page ? lab_nodes_find(key) : NODE_UNKNOWN;
    struct lab_answer answer = {.level = LEVEL_UNKNOWN};
    if (node == NODE_UNKNOWN) return;
    at->line = key >> LINE_SHIFT;
    bool exact = lab_exact_copies(vcpu); /* first: the vcpu's L1 may be another task's until then */
    if (lab_kernel.cached) answer = lab_lines_buffer(vcpu, key, store);
    if (exact) lab_exact_buffer(vcpu, last, key, node, store, &answer);
}

/* clears: the instruction is no copy. */
static void at_page(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *clears) {
    bool store = qemu_plugin_mem_is_store(info);
    uint64_t from = clears ? 0 : copied[vcpu];
    if (__builtin_expect(from && store, 0)) copied[vcpu] = 0;
    if (address < KERNEL_HALF) at_buffer(vcpu, info, address, store);
    if (address % (UINT64_C(1) << PAGE_SHIFT) || address < KERNEL_HALF || !lab_kernel.counting) return;
    if (store && !clears && !from) return; /* from a program's memory, into a file */
    struct qemu_plugin_hwaddr *page = qemu_plugin_get_hwaddr(info, address);
    uint64_t key = page ? lab_nodes_key(page) : 0;
    if (!page || lab_nodes_find(key) == NODE_UNKNOWN) return;
    if (!store) {
        copied[vcpu] = key + 1;
        return;
    }
    if (lab_kernel.cached && from) lab_lines_copied(vcpu, from - 1, key);
    else if (lab_kernel.cached) lab_lines_cleared(key);
    lab_exact_overwritten(key);
    if (from) lab_exact_forget_own(vcpu); /* no line of the copy is known to be its task's */
}

static void watch_pages(const struct qemu_plugin_tb *block, size_t instructions) {
    for (size_t i = 0; i < instructions; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        bool clears = false;
        bool copy = i + 1 < instructions && copies(instruction, qemu_plugin_tb_get_insn(block, i + 1));
        if (copy || repeats(instruction, &clears))
            qemu_plugin_register_vcpu_mem_cb(instruction, at_page, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                             (void *)(uintptr_t)clears);
    }
}

void lab_kernel_watch(const struct qemu_plugin_tb *block, size_t instructions) {
    watch_switch(block, instructions);
    watch_stages(block, instructions);
    if (lab_kernel.queued_at) watch_queues(block, instructions);
    if (lab_recording || lab_kernel.cached) watch_pages(block, instructions);
}
