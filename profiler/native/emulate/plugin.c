/* QEMU's side: what is called at each access (accesses.c) and system call (calls.c). */
#include "emulate.h"
#include "qemu_plugin.h"

#include <stdio.h>
#include <unistd.h>

static int api; /* of the QEMU that runs */

#define LOADED "numaplan: loaded\n" /* guest.py waits for it */
#define INSTRUCTION_MAX 16 /* bytes; no architecture has longer ones */

/* What is to be counted of accesses by the instruction at an address of the host. */
static unsigned counted(uint64_t address) {
    unsigned counts = (em_options.transfers ? COUNT_TRANSFERS : 0) | (em_options.uses ? COUNT_USES : 0);
    return counts && (em_options.runtime || !em_runtime_code(address)) ? counts : 0;
}

static void on_translate(struct qemu_plugin_tb *tb) {
    size_t count = qemu_plugin_tb_n_insns(tb);
    bool accesses = !em_options.fair;
    uint64_t guest = qemu_plugin_tb_vaddr(tb), host = (uint64_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0));
    uint64_t base = host ? host - guest : 0;
    em_memory_see(guest, (const void *)(uintptr_t)host);
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint8_t code[INSTRUCTION_MAX] = {0};
        size_t bytes = qemu_insn_code(insn, code, sizeof code, api);
        void *ip = (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn);
        unsigned counts = counted((uint64_t)ip + base);
        enum em_jump jump = em_options.calls ? em_guest_jump(code, bytes) : JUMP_OTHER;
        qemu_mem_cb on_memory = em_access_callback(counts);
        if (jump != JUMP_OTHER) on_memory = em_jump_callback(jump, (uint64_t)ip, counts, &ip);
        qemu_plugin_register_vcpu_mem_cb(insn, on_memory, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, ip);
        accesses = accesses || em_guest_surely_accesses(code, bytes);
        if (em_options.fair && em_guest_spins(code, bytes))
            qemu_plugin_register_vcpu_insn_exec_cb(insn, em_on_spin, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
    if (!accesses)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, em_on_idle_block, QEMU_PLUGIN_CB_NO_REGS, (void *)(intptr_t)count);
}

/* What is to be called from now on. */
void em_register(qemu_plugin_id_t id) {
    qemu_on_birth(id, em_thread_born);
    if (!em_recording) {
        em_part_register(id);
        return;
    }
    qemu_on_translation(id, on_translate);
    qemu_on_syscall(id, em_on_syscall);
    qemu_on_syscall_ret(id, em_on_syscall_return);
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv) {
    api = info->version.cur;
    if (info->system_emulation || !qemu_info_is_known()) {
        fprintf(stderr, "numaplan: this QEMU's plugin interface is not the one known\n");
        return 1;
    }
    if (argc == 1 && !strcmp(argv[0], "try=yes")) { /* whether it can be loaded: nothing is run */
        if (write(STDOUT_FILENO, LOADED, sizeof LOADED - 1) < 0) _exit(1);
        _exit(0);
    }
    if (!em_options_read(argc, argv)) return 1;
    em_guest_select(info->target_name);
    em_turns_reset();
    em_clock_begin();
    if (!em_part_init(id)) {
        fprintf(stderr, "numaplan: the recorder's word on when to record is not there\n");
        return 1;
    }
    if (!em_threads_init() || (em_options.cached && !(em_pages_init() && caches_init()))) return 1;
    if (em_options.cached && reach_asked() && !reach_init()) return 1;
    if (em_options.transfers && !transfers_init()) return 1;
    em_cpus_init();
    em_runtime_init();
    em_register(id);
    return 0;
}
