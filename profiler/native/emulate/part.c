/* The part of the run that is recorded. Outside of it the program runs as fast as QEMU goes: nothing is called but
 * what must tell when the part begins.
 *
 * What is called is chosen when QEMU translates a block, so a change has all blocks translated anew: we ask QEMU for a
 * reset, which it does when no thread runs, and register what is wanted then. Who asks must be one of the guest's
 * threads, within a callback.
 *
 * A word that the recorder shares with all processes of the program says whether its time has come (by the clock, or
 * by a signal to it). Accesses and the program's own marks are counted here, by each program image for itself.
 */
#include "emulate.h"
#include "qemu_plugin.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRANT 1000 /* accesses that a thread counts by itself */
#define MARK_CALL 0x6e756d61 /* no system call of any architecture; profiler/native/recorder/recorder.c makes it */

bool em_recording;

/* What the shared word says; also backends/emulation/word.py. */
enum { NOT_NOW, NOW, NEVER_MORE };

static const uint32_t always = NOW;
static struct {
    qemu_plugin_id_t id;
    const uint32_t *wanted; /* the shared word */
    int64_t skip_left;      /* accesses, but for those that threads were granted */
    int64_t take_left;
    int32_t marks; /* begun and not ended */
    bool over;
    bool asked;        /* for a reset */
    bool helpers_call; /* something must be called for accesses; see forget_helpers */
} part = {.wanted = &always};

static __thread int64_t granted __attribute__((tls_model("initial-exec")));

static bool skipping(void) { return __atomic_load_n(&part.skip_left, __ATOMIC_RELAXED) > 0; }

static bool due(void) {
    return __atomic_load_n(part.wanted, __ATOMIC_RELAXED) == NOW && !__atomic_load_n(&part.over, __ATOMIC_RELAXED) &&
           !skipping() && (!em_options.marked || __atomic_load_n(&part.marks, __ATOMIC_RELAXED) > 0);
}

/* Before 8.0 QEMU can go on to what a thread's last block was to call for the accesses of its helpers, although that
 * was dropped with the block. What takes it back is no part of the plugin interface; without that, blocks in which
 * nothing is recorded call something for their accesses as well. */
void *qemu_get_cpu(int index) __attribute__((weak));
void qemu_plugin_disable_mem_helpers(void *cpu) __attribute__((weak));

static bool forget_helpers(void) {
    if (qemu_plugin_version > 1) return true;
    if (!qemu_get_cpu || !qemu_plugin_disable_mem_helpers) return false;
    for (unsigned vcpu = 0; vcpu < em_thread_vcpus(); vcpu++) {
        void *cpu = qemu_get_cpu((int)vcpu);
        if (cpu) qemu_plugin_disable_mem_helpers(cpu);
    }
    return true;
}

/* No guest thread runs. */
static void on_reset(void) {
    bool now = due();
    __atomic_store_n(&part.asked, false, __ATOMIC_RELAXED);
    part.helpers_call |= !forget_helpers() && em_recording;
    if (now != em_recording) {
        if (em_recording) em_threads_pause();
        em_recording = now;
        if (em_recording) em_threads_resume();
    }
    em_register(part.id);
}

/* Have what is called changed, if that is due; in a callback of a guest's thread. */
void em_part_check(void) {
    if (likely(due() == em_recording) || __atomic_exchange_n(&part.asked, true, __ATOMIC_RELAXED)) return;
    qemu_reset(part.id, on_reset);
}

/* ---- while nothing is recorded ---- */

static void on_block(unsigned vcpu, void *unused) {
    (void)vcpu, (void)unused;
    if (unlikely(*(volatile const uint32_t *)part.wanted == NOW)) em_part_check();
}

static inline void skip_one(void) {
    if (likely(--granted > 0)) return;
    int64_t left = __atomic_load_n(&part.skip_left, __ATOMIC_RELAXED), next;
    do {
        if (left <= 0) {
            em_part_check();
            return;
        }
        next = left < GRANT ? left : GRANT;
    } while (
        !__atomic_compare_exchange_n(&part.skip_left, &left, left - next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    granted = next;
}

static void on_skipped(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *unused) {
    (void)vcpu, (void)addr, (void)unused;
    for (unsigned left = qemu_access_parts(info); left; left--) skip_one();
}

/* Of translation no more than this is wanted where only the cpus are shown, or a mark is waited for. */
static void on_translate_only(struct qemu_plugin_tb *tb) {
    em_memory_see(qemu_plugin_tb_vaddr(tb), qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0)));
}

static void on_translate(struct qemu_plugin_tb *tb) {
    on_translate_only(tb);
    if (!skipping()) qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, NULL);
    if (!skipping() && !part.helpers_call) return;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), on_skipped, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, NULL);
}

static void on_syscall(unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3) {
    (void)vcpu;
    a1 = em_guest_argument(a1), a2 = em_guest_argument(a2), a3 = em_guest_argument(a3);
    em_cpus_asked(number, a1, a2, a3);
    em_call_begins(number, a1, a2);
    if (em_options.marked) em_part_marked(number, a1);
}

static void on_syscall_return(unsigned vcpu, int64_t number, int64_t result) {
    (void)vcpu;
    em_call_returns(number);
    em_cpus_answered(result);
}

/* What is called while nothing is recorded; births in any case (plugin.c). */
void em_part_register(qemu_plugin_id_t id) {
    bool over = part.over || *part.wanted == NEVER_MORE;
    qemu_on_syscall(id, on_syscall);
    qemu_on_syscall_ret(id, on_syscall_return);
    if (part.helpers_call || (!over && (skipping() || part.wanted != &always))) qemu_on_translation(id, on_translate);
    else if (em_cpus_shown() || !over) qemu_on_translation(id, on_translate_only);
}

/* ---- while it is ---- */

/* A system call that may be a mark; true if it is. */
bool em_part_marked(int64_t number, uint64_t begins) {
    if (number != MARK_CALL) return false;
    int32_t seen = __atomic_load_n(&part.marks, __ATOMIC_RELAXED);
    while ((begins || seen > 0) && !__atomic_compare_exchange_n(&part.marks, &seen, seen + (begins ? 1 : -1), false,
                                                                __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        /* another thread was sooner */
    }
    em_part_check();
    return true;
}

/* So many accesses were recorded; at the end of a turn. */
void em_part_took(int64_t accesses) {
    if (em_options.take && __atomic_sub_fetch(&part.take_left, accesses, __ATOMIC_RELAXED) <= 0)
        __atomic_store_n(&part.over, true, __ATOMIC_RELAXED);
}

bool em_part_over(void) { return part.over; }

/* How many accesses may still be recorded. */
int64_t em_part_room(void) { return em_options.take ? __atomic_load_n(&part.take_left, __ATOMIC_RELAXED) : INT64_MAX; }

static bool map_word(void) {
    char path[4200];
    snprintf(path, sizeof path, "%s/emulate-wanted", em_options.dir);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    void *word = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(uint32_t), PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (word == MAP_FAILED) return false;
    part.wanted = word;
    return true;
}

bool em_part_init(qemu_plugin_id_t id) {
    part.id = id;
    part.skip_left = (int64_t)em_options.skip;
    part.take_left = (int64_t)em_options.take;
    if (em_options.part && !map_word()) return false;
    em_recording = due();
    return true;
}

/* In a forked child, where a thread that asked for a reset may not be. */
void em_part_forked(void) { part.asked = false; }
