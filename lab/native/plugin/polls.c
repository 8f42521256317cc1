#include "polls.h"

#include "kernel.h"

struct lab_polls lab_polls[VCPUS_MAX];

static void at_pause(unsigned vcpu, void *unused) {
    (void)unused;
    struct lab_polls *polls = &lab_polls[vcpu];
    if (polls->seen <= POLL_ACCESSES)
        for (unsigned i = 0; i < polls->seen; i++) lab_rows_current[vcpu]->polls[polls->node[i]]++;
    polls->seen = lab_kernel.counting ? 0 : POLL_ACCESSES + 1;
}

static bool is_pause(const struct qemu_plugin_insn *instruction) {
    unsigned char code[2] = {0};
    return qemu_insn_code(instruction, code, sizeof code, lab_kernel.api) == sizeof code && code[0] == 0xf3 &&
           code[1] == 0x90;
}

void lab_polls_watch(const struct qemu_plugin_tb *block, size_t instructions) {
    for (size_t i = 0; i < instructions; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        if (is_pause(instruction))
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, at_pause, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
}

void lab_polls_switch(unsigned vcpu) { lab_polls[vcpu].seen = POLL_ACCESSES + 1; }

void lab_polls_reset(void) {
    for (unsigned v = 0; v < VCPUS_MAX; v++) lab_polls_switch(v);
}
