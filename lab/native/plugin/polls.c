#include "polls.h"

#include "kernel.h"

#include <string.h>

static void at_wait(unsigned vcpu, void *unused) {
    (void)unused;
    struct lab_row *row = lab_rows_current[vcpu];
    struct lab_looks *looks = &row->looks;
    if (!lab_kernel.counting) return;
    if (looks->seen <= LOOKS_MOST)
        for (unsigned i = 0; i < looks->seen; i++) row->polls[looks->node[i]]++;
    looks->seen = 0;
}

static bool is(const struct qemu_plugin_insn *instruction, const void *code, size_t bytes) {
    unsigned char own[8];
    return qemu_insn_code(instruction, own, sizeof own, lab_kernel.api) == bytes && !memcmp(own, code, bytes);
}

void lab_polls_watch(const struct qemu_plugin_tb *block, size_t instructions) {
    static const unsigned char pause[] = {0xf3, 0x90}, yield[] = {0xb8, 24, 0, 0, 0}, call[] = {0x0f, 0x05};
    const struct qemu_plugin_insn *before = NULL;
    for (size_t i = 0; i < instructions; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        bool yields = before && is(instruction, call, sizeof call) && is(before, yield, sizeof yield);
        if (yields || is(instruction, pause, sizeof pause))
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, at_wait, QEMU_PLUGIN_CB_NO_REGS, NULL);
        before = instruction;
    }
}
