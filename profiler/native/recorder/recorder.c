/* What a recording keeps of a process: everything that is seen, in the log of its image. */
#include "recorder.h"

#include "chain.h"
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LOG_BYTES = 128 << 20, PROCESS_TEXT = 32 * 1024 };

static void log_process(void) {
    static char text[PROCESS_TEXT];
    ssize_t path = readlink("/proc/self/exe", text, NP_PATH - 1);
    size_t used = path > 0 ? (size_t)path : 0;
    text[used++] = 0;
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t got;
    while (file >= 0 && used < sizeof text && (got = read(file, text + used, sizeof text - used)) > 0)
        used += (size_t)got;
    if (file >= 0) close(file);
    np_log_text(&(struct np_record){.kind = NP_PROCESS}, text, used);
}

/* ---- for who sees every access: a byte of each process for each of these (lab/native/plugin/marks.h) ---- */

enum { TELL_STARTS, TELL_BORN, TELL_BEGINS, TELL_ENDS, TOLD_BYTES = 4 * 16384 };

static volatile char *told; /* NULL: nobody sees it */

static void tell(int what) {
    uint32_t byte = 4 * np_process_entry() + (uint32_t)what;
    if (told && byte < TOLD_BYTES) told[byte] = 0;
}

/* NUMAPLAN_MARKS: the address, hexadecimal. */
static void tell_start(void) {
    const char *address = np_env("NUMAPLAN_MARKS");
    if (!address) return;
    void *wanted = (void *)strtoul(address, NULL, 16);
    void *found = (void *)syscall(SYS_mmap, wanted, TOLD_BYTES, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (found == wanted) told = found;
    tell(TELL_STARTS);
}

static void thread_born(uint32_t number, uint64_t path, uintptr_t stack, size_t stack_bytes, bool bound) {
    (void)number, (void)path, (void)stack, (void)stack_bytes, (void)bound;
    tell(TELL_BORN);
}

static void start(void) {
    np_wanted = (struct np_wanted){.log_bytes = LOG_BYTES, .regions = true};
    np_emulated_start();
    tell_start();
    log_process();
}

/* ---- regions ---- */

/* Mappings are few: all their ends are logged. */
static bool region_made(enum np_region kind, uintptr_t address, size_t bytes, uintptr_t site, uint32_t sequence) {
    uint32_t chain = kind == NP_ARENA ? 0 : np_chain();
    np_log(NP_ALLOC, np_thread_number(), kind | chain << 8, address, bytes, site, sequence);
    return kind == NP_HEAP;
}

static void region_gone(enum np_region kind, uintptr_t address, size_t bytes) {
    np_log(NP_FREE, np_thread_number(), kind, address, bytes, 0, 0);
}

/* ---- modules ---- */

static void module_loaded(const struct np_module *module) {
    static char text[NP_BUILD_ID + NP_PATH]; /* one scan at a time */
    size_t length = strnlen(module->path, NP_PATH), id_bytes = module->build_id_bytes;
    if (id_bytes) memcpy(text, module->build_id, id_bytes);
    memcpy(text + id_bytes, module->path, length);
    struct np_record record = {.kind = NP_MODULE, .thread = np_thread_number(), .a = module->executable};
    record.b = module->bias;
    record.c = module->not_before_ns;
    record.e = id_bytes;
    np_log_text(&record, text, id_bytes + length);
    for (int i = 0; i < module->segment_count; i++) {
        const ElfW(Phdr) *segment = &module->segments[i];
        if (segment->p_type == PT_LOAD)
            np_log(NP_SEGMENT, NP_NO_THREAD, segment->p_flags, module->bias, module->bias + segment->p_vaddr,
                   segment->p_memsz, segment->p_offset);
    }
}

static void module_gone(uintptr_t bias) { np_log(NP_MODULE_END, NP_NO_THREAD, 0, bias, 0, 0, 0); }

/* ---- what the program marks (launcher/native/include/numaplan.h) ---- */

enum { MARK_CALL = 0x6e756d61 }; /* no system call; the emulation sees it (profiler/native/emulate/part.c) */

static _Atomic int marks; /* begun and not ended */

static int mark(bool begins) {
    if (!np_active()) return -1;
    int seen = atomic_load(&marks);
    while ((begins || seen > 0) && !atomic_compare_exchange_weak(&marks, &seen, seen + (begins ? 1 : -1))) {
        /* another thread was sooner */
    }
    if (!begins) tell(TELL_ENDS);
    np_log(NP_MARK, np_thread_number(), begins, 0, 0, 0, 0);
    if (begins) tell(TELL_BEGINS);
    int saved = errno;
    if (np_is_emulated()) syscall(MARK_CALL, (long)begins);
    errno = saved;
    return 0;
}

__attribute__((visibility("default"))) int numaplan_mark_begin(void) { return mark(true); }
__attribute__((visibility("default"))) int numaplan_mark_end(void) { return mark(false); }

/* In a forked child: what began before goes on in it. */
static void forked(void) {
    np_chains_forget();
    for (int left = atomic_load(&marks); left > 0; left--) {
        np_log(NP_MARK, np_thread_number(), true, 0, 0, 0, 0);
        tell(TELL_BEGINS);
    }
}

/* ---- the end ---- */

/* Anonymous memory at the end of the process: the heaps of small blocks, and whatever no hook saw made. */
static bool log_area(const struct np_mapping *mapping, void *unused) {
    (void)unused;
    if (mapping->anonymous && mapping->readable && mapping->writable)
        np_log(NP_AREA, NP_NO_THREAD, 0, mapping->start, mapping->end - mapping->start, 0, 0);
    return true;
}

static void log_areas(void) {
    if (np_log_image()) np_maps(log_area, NULL);
}

static void end(void) {
    if (np_sandboxed()) return;
    log_areas();
    np_monitoring_end();
}

const struct np_hooks np_hooks = {
    .library = "preload.so",
    .start = start,
    .forked = forked,
    .end = end,
    .sandbox_coming = log_areas,
    .thread_born = thread_born,
    .region_made = region_made,
    .region_gone = region_gone,
    .module_loaded = module_loaded,
    .module_gone = module_gone,
    .exec_room = np_emulated_room,
    .exec_change = np_emulated_change,
};
