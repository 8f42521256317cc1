/* The part of QEMU's plugin interface that the emulation (user mode) and the lab (system mode) use.
 *
 * Distributions ship QEMU with plugin support but without qemu-plugin.h, so the interface is declared here.
 * QEMU resolves these symbols when it loads the library, which must say for which version it was built: QEMU 4.2
 * to 8.2 take version 1, 9 to 11.0 version 2 and above, later ones 7. What is declared here is the same in all but for
 * qemu_plugin_insn_data, how wide an access can be and what callbacks of the whole run are given (callbacks.c), so one
 * library serves: version.c says what QEMU wants.
 */
#ifndef NUMAPLAN_QEMU_PLUGIN_H
#define NUMAPLAN_QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define QEMU_PLUGIN_COPIES_CODE 3 /* from this version on qemu_plugin_insn_data copies */
#define PLUGIN_EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

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

/* The version that this library says it was built for; known before qemu_plugin_install. */
extern int qemu_plugin_version;

/* callbacks.c: what is called for the whole run. */
typedef void (*qemu_reset_cb)(void);
typedef void (*qemu_birth_cb)(unsigned vcpu);
typedef void (*qemu_translation_cb)(struct qemu_plugin_tb *tb);
typedef void (*qemu_syscall_cb)(unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3);
typedef void (*qemu_syscall_ret_cb)(unsigned vcpu, int64_t number, int64_t result);
/* Drop all that is registered and translated, and call cb, when no vcpu runs; asked for by one that does. */
void qemu_reset(qemu_plugin_id_t id, qemu_reset_cb cb);
void qemu_on_birth(qemu_plugin_id_t id, qemu_birth_cb cb);
void qemu_on_translation(qemu_plugin_id_t id, qemu_translation_cb cb);
void qemu_on_syscall(qemu_plugin_id_t id, qemu_syscall_cb cb);
void qemu_on_syscall_ret(qemu_plugin_id_t id, qemu_syscall_ret_cb cb);

typedef void (*qemu_vcpu_udata_cb)(unsigned vcpu, void *userdata);
typedef void (*qemu_mem_cb)(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *userdata);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_vcpu_udata_cb cb,
                                          enum qemu_plugin_cb_flags flags, void *userdata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_vcpu_udata_cb cb,
                                            enum qemu_plugin_cb_flags flags, void *userdata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_mem_cb cb, enum qemu_plugin_cb_flags flags,
                                      enum qemu_plugin_mem_rw rw, void *userdata);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
/* In user mode where the host has it; NULL: not known. */
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
/* One symbol of two forms; see qemu_insn_code. */
size_t qemu_insn_data_copied(const struct qemu_plugin_insn *insn, void *code,
                             size_t room) __asm__("qemu_plugin_insn_data");
const void *qemu_insn_data_kept(const struct qemu_plugin_insn *insn) __asm__("qemu_plugin_insn_data");
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *seen);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *seen);

/* Where in an access's facts the logarithm of its size begins, and what in those of a store says that nothing is loaded,
 * whatever else they say: found by qemu_info_is_known. */
extern unsigned qemu_size_bit;
extern qemu_plugin_meminfo_t qemu_only_stores;

/* What an access does: an atomic read-modify-write does both. */
static inline unsigned qemu_access_rw(qemu_plugin_meminfo_t info) {
    unsigned rw = info >> 16 & QEMU_PLUGIN_MEM_RW;
    return rw == QEMU_PLUGIN_MEM_RW && (info & qemu_only_stores) ? QEMU_PLUGIN_MEM_W : rw;
}

/* How many accesses of at most 8 bytes this one is. QEMU up to 8 performs one of 16 bytes in two halves and tells of
 * both, later ones perform it at once: counted alike. */
static inline unsigned qemu_access_parts(qemu_plugin_meminfo_t info) {
    unsigned size_shift = info >> qemu_size_bit & 7;
    return size_shift > 3 ? 1u << (size_shift - 3) : 1;
}

/* Whether an access is told of as we read it; to be asked first. */
bool qemu_info_is_known(void);

/* Copy an instruction's code, as much as there is room for; returns its whole size in bytes.
 * version: the interface of the QEMU that runs (info->version.cur), not that of the build. */
static inline size_t qemu_insn_code(const struct qemu_plugin_insn *insn, void *code, size_t room, int version) {
    size_t bytes = qemu_plugin_insn_size(insn);
    size_t wanted = bytes < room ? bytes : room;
    if (version >= QEMU_PLUGIN_COPIES_CODE) qemu_insn_data_copied(insn, code, wanted);
    else memcpy(code, qemu_insn_data_kept(insn), wanted);
    return bytes;
}

#endif
