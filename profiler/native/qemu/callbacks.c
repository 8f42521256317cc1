/* What QEMU calls for the whole run, in the form that its version has.
 *
 * Up to version 6 of the interface QEMU gives such a callback the plugin's id first, from 7 on no id, but the userdata
 * that it was registered with at the end. Ours need neither. Callbacks of single instructions and blocks have the same
 * form in all versions.
 */
#include "qemu_plugin.h"

#define VERSION_WITH_USERDATA 7

/* Of either form. Versions without userdata leave the last argument alone. */
typedef void (*any_cb)(void);
void qemu_plugin_reset(qemu_plugin_id_t id, any_cb cb, void *userdata);
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, any_cb cb, void *userdata);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, any_cb cb, void *userdata);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, any_cb cb, void *userdata);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t id, any_cb cb, void *userdata);

static struct {
    qemu_reset_cb reset;
    qemu_birth_cb birth;
    qemu_translation_cb translation;
    qemu_syscall_cb syscall;
    qemu_syscall_ret_cb syscall_ret;
} on; /* set when no vcpu runs */

static any_cb suitable(any_cb by_id, any_cb by_userdata) {
    return qemu_plugin_version >= VERSION_WITH_USERDATA ? by_userdata : by_id;
}

static void reset_by_id(qemu_plugin_id_t id) {
    (void)id;
    on.reset();
}

static void reset_by_userdata(void *none) {
    (void)none;
    on.reset();
}

void qemu_reset(qemu_plugin_id_t id, qemu_reset_cb cb) {
    on.reset = cb;
    qemu_plugin_reset(id, suitable((any_cb)reset_by_id, (any_cb)reset_by_userdata), NULL);
}

static void birth_by_id(qemu_plugin_id_t id, unsigned vcpu) {
    (void)id;
    on.birth(vcpu);
}

static void birth_by_userdata(unsigned vcpu, void *none) {
    (void)none;
    on.birth(vcpu);
}

void qemu_on_birth(qemu_plugin_id_t id, qemu_birth_cb cb) {
    on.birth = cb;
    qemu_plugin_register_vcpu_init_cb(id, suitable((any_cb)birth_by_id, (any_cb)birth_by_userdata), NULL);
}

static void translation_by_id(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    on.translation(tb);
}

static void translation_by_userdata(struct qemu_plugin_tb *tb, void *none) {
    (void)none;
    on.translation(tb);
}

void qemu_on_translation(qemu_plugin_id_t id, qemu_translation_cb cb) {
    any_cb suits = suitable((any_cb)translation_by_id, (any_cb)translation_by_userdata);
    on.translation = cb;
    qemu_plugin_register_vcpu_tb_trans_cb(id, suits, NULL);
}

/* None of ours looks at more than three arguments of a call. */
static void syscall_by_id(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                          uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    on.syscall(vcpu, number, a1, a2, a3);
}

static void syscall_by_userdata(unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                                uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8, void *none) {
    (void)a4, (void)a5, (void)a6, (void)a7, (void)a8, (void)none;
    on.syscall(vcpu, number, a1, a2, a3);
}

void qemu_on_syscall(qemu_plugin_id_t id, qemu_syscall_cb cb) {
    on.syscall = cb;
    qemu_plugin_register_vcpu_syscall_cb(id, suitable((any_cb)syscall_by_id, (any_cb)syscall_by_userdata), NULL);
}

static void syscall_ret_by_id(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result) {
    (void)id;
    on.syscall_ret(vcpu, number, result);
}

static void syscall_ret_by_userdata(unsigned vcpu, int64_t number, int64_t result, void *none) {
    (void)none;
    on.syscall_ret(vcpu, number, result);
}

void qemu_on_syscall_ret(qemu_plugin_id_t id, qemu_syscall_ret_cb cb) {
    any_cb suits = suitable((any_cb)syscall_ret_by_id, (any_cb)syscall_ret_by_userdata);
    on.syscall_ret = cb;
    qemu_plugin_register_vcpu_syscall_ret_cb(id, suits, NULL);
}
