/* The executable and its libraries: load bias, segments, build id.
 *
 * dlopen is not wrapped: it looks at its caller to find libraries ($ORIGIN, RUNPATH), and would find us. Instead
 * the linker's counters of loads and unloads are looked at whenever something else is seen.
 */
#include "preload.h"

#include <elf.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

enum { MODULES = 1024, PATIENCE = 10000 };

struct module {
    uintptr_t bias, start; /* start to end: its code */
    _Atomic uintptr_t end; /* set last and taken away first: others look for code while this is written */
    uint64_t name_hash; /* of the file's basename */
    struct np_tables tables; /* header 0: it has none */
    uint32_t seen;      /* scan that saw it last, 0: a free entry */
};

static struct module modules[MODULES];
static _Atomic uint32_t module_count, scans;
static _Atomic bool scanning;
static _Atomic int looking, forking; /* threads in the linker's list, or about to fork */
static _Atomic uint64_t loads_seen = UINT64_MAX;
static uint64_t last_scan_ns;

static int count_loads(struct dl_phdr_info *info, size_t size, void *loads) {
    (void)size;
    *(uint64_t *)loads = info->dlpi_adds << 32 ^ info->dlpi_subs;
    return 1;
}

static const char *path_of(const struct dl_phdr_info *info, char *buffer) {
    if (info->dlpi_name && *info->dlpi_name) return info->dlpi_name;
    ssize_t length = readlink("/proc/self/exe", buffer, NP_PATH - 1);
    buffer[length > 0 ? length : 0] = 0;
    return buffer;
}

static size_t find_build_id(const struct dl_phdr_info *info, const unsigned char **id) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_NOTE) continue;
        const char *at = (const char *)(info->dlpi_addr + header->p_vaddr), *end = at + header->p_memsz;
        while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const void *)at;
            const char *name = at + sizeof *note, *content = name + ((note->n_namesz + 3u) & ~3u);
            if (content > end || (size_t)(end - content) < note->n_descsz) break;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp(name, "GNU", 4)) {
                *id = (const unsigned char *)content;
                return note->n_descsz < NP_BUILD_ID ? note->n_descsz : NP_BUILD_ID;
            }
            at = content + ((note->n_descsz + 3u) & ~3u);
        }
    }
    return 0;
}

static void span_of(const struct dl_phdr_info *info, struct module *module) {
    module->start = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
        uintptr_t start = info->dlpi_addr + header->p_vaddr, end = start + header->p_memsz;
        if (start < module->start) module->start = start;
        if (end > module->end) module->end = end;
    }
}

/* The table that is searched for an address, and the segment that has it and what it leads to. */
static void find_tables(const struct dl_phdr_info *info, struct np_tables *tables) {
    uintptr_t header = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) header = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    for (int i = 0; header && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + segment->p_vaddr, high = low + segment->p_filesz;
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_R && low <= header && header < high)
            *tables = (struct np_tables){header, low, high};
    }
}

static void tell_of_module(const struct dl_phdr_info *info, const char *path, uint64_t name_hash, bool executable) {
    struct np_module module = {.path = path, .name_hash = name_hash, .bias = info->dlpi_addr, .executable = executable};
    module.segments = info->dlpi_phdr;
    module.segment_count = info->dlpi_phnum;
    module.not_before_ns = last_scan_ns;
    module.build_id_bytes = find_build_id(info, &module.build_id);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_W)) continue;
        uintptr_t start = info->dlpi_addr + header->p_vaddr, end = start + header->p_memsz;
        if (!module.end || start < module.start) module.start = start;
        if (end > module.end) module.end = end;
    }
    np_hooks.module_loaded(&module);
}

static struct module *entry_for(const struct dl_phdr_info *info, uint64_t name_hash, bool *known) {
    struct module *place = NULL;
    uint32_t count = atomic_load(&module_count);
    for (uint32_t i = 0; i < count; i++) {
        struct module *module = &modules[i];
        *known = module->seen && module->bias == info->dlpi_addr && module->name_hash == name_hash;
        if (*known) return module;
        if (!module->seen && !place) place = module;
    }
    *known = false;
    if (!place && count < MODULES) {
        place = &modules[count];
        atomic_store(&module_count, count + 1);
    }
    return place;
}

static int see_module(struct dl_phdr_info *info, size_t size, void *first) {
    (void)size;
    static char buffer[NP_PATH]; /* one scan at a time; threads may have small stacks */
    const char *path = path_of(info, buffer), *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    bool known, executable = *(bool *)first;
    *(bool *)first = false;
    uint64_t name_hash = np_hash(NP_HASH_START, name, strlen(name));
    struct module *module = entry_for(info, name_hash, &known);
    if (!module) return 1;
    uint32_t scan = atomic_load(&scans);
    if (!known) {
        struct module fresh = {.bias = info->dlpi_addr, .name_hash = name_hash};
        span_of(info, &fresh);
        find_tables(info, &fresh.tables);
        module->bias = fresh.bias;
        module->start = fresh.start;
        module->tables = fresh.tables;
        module->name_hash = fresh.name_hash;
        atomic_store_explicit(&module->end, fresh.end, memory_order_release);
        if (np_hooks.module_loaded) tell_of_module(info, path, name_hash, executable);
    }
    module->seen = scan;
    return 0;
}

static void forget_unloaded(uint32_t scan) {
    for (uint32_t i = 0; i < atomic_load(&module_count); i++) {
        if (!modules[i].seen || modules[i].seen == scan) continue;
        NP_TELL(module_gone, modules[i].bias);
        atomic_store(&modules[i].end, 0);
        modules[i].seen = 0;
    }
}

static void scan_modules(void) {
    uint64_t loads = 0;
    bool idle = false;
    dl_iterate_phdr(count_loads, &loads);
    if (loads == atomic_load(&loads_seen) || !atomic_compare_exchange_strong(&scanning, &idle, true)) return;
    uint32_t scan = atomic_fetch_add(&scans, 1) + 1;
    bool first = true;
    uint64_t started = np_now();
    if (dl_iterate_phdr(see_module, &first) == 0) forget_unloaded(scan);
    last_scan_ns = started;
    atomic_store(&loads_seen, loads);
    atomic_store(&scanning, false);
}

void np_modules_scan(void) {
    if (!np_wanted.regions || !np_enter()) return;
    int saved = errno;
    atomic_fetch_add(&looking, 1);
    if (!atomic_load(&forking)) scan_modules();
    atomic_fetch_sub(&looking, 1);
    np_leave();
    errno = saved;
}

/* The linker's lock is not the child's again when another thread holds it at the fork: at least none does for us. */
void np_modules_before_fork(void) {
    atomic_fetch_add(&forking, 1);
    for (int turn = 0; atomic_load(&looking) && turn < PATIENCE; turn++) sched_yield();
}

void np_modules_after_fork(bool child) {
    atomic_fetch_sub(&forking, 1);
    if (!child) return;
    atomic_store(&forking, 0);
    atomic_store(&looking, 0);
    atomic_store(&scanning, false);
}

static const struct module *module_at(uintptr_t code) {
    for (uint32_t i = 0; i < atomic_load(&module_count); i++)
        if (code < atomic_load_explicit(&modules[i].end, memory_order_acquire) && code >= modules[i].start)
            return &modules[i];
    return NULL;
}

bool np_module_of(uintptr_t code, uint64_t *name_hash, uintptr_t *bias) {
    const struct module *module = module_at(code);
    if (!module) return false;
    *name_hash = module->name_hash;
    *bias = module->bias;
    return true;
}

bool np_module_tables(uintptr_t code, struct np_tables *tables) {
    const struct module *module = module_at(code);
    if (!module || !module->tables.header) return false;
    *tables = module->tables;
    return true;
}
