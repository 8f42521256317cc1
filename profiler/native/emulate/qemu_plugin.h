/* The part of QEMU's plugin API, version 1, that the emulation needs.
 *
 * Distributions ship QEMU with plugin support but without qemu-plugin.h, so the interface is declared here.
 * QEMU resolves these symbols when it loads the library. Source: QEMU 7.2, documentation of TCG plugins.
 */
#ifndef NUMAPLAN_QEMU_PLUGIN_H
#define NUMAPLAN_QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_PLUGIN_API 1
#define PLUGIN_EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;

struct qemu_info {
    const char *target_name;
    struct {
        int min;
        int cur;
    } version;
    bool system_emulation;
    struct {
        int smp_vcpus;
        int max_vcpus;
    } system;
};

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };

typedef void (*qemu_vcpu_cb)(qemu_plugin_id_t id, unsigned vcpu);
typedef void (*qemu_vcpu_udata_cb)(unsigned vcpu, void *userdata);
typedef void (*qemu_mem_cb)(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *userdata);
typedef void (*qemu_tb_trans_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_syscall_cb)(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2,
                                uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);
typedef void (*qemu_syscall_ret_cb)(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_vcpu_cb cb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_tb_trans_cb cb);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_vcpu_udata_cb cb,
                                          enum qemu_plugin_cb_flags flags, void *userdata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_vcpu_udata_cb cb,
                                            enum qemu_plugin_cb_flags flags, void *userdata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_mem_cb cb,
                                      enum qemu_plugin_cb_flags flags, enum qemu_plugin_mem_rw rw, void *userdata);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, qemu_syscall_cb cb);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t id, qemu_syscall_ret_cb cb);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);

#endif
