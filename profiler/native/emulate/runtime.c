/* Which code is the loader's or a thread runtime's: what it touches, it touches for itself (start-up, spinning, task
 * queues), and no data of the program changes hands.
 *
 * backends/emulation/filter.py says the same of samples, when all is over. Here it is asked as code is translated, of
 * the mappings of our own process: QEMU maps the guest's files as the guest does.
 */
#include "emulate.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST_FUNCTION (1 << 16)

/* Memory from start up to end. Of libc, the functions of the thread library are a runtime's. */
enum owner { PROGRAM, RUNTIME, LIBC };
struct range {
    uint64_t start, end;
    enum owner owner;
};

static struct ranges {
    struct range *list;
    size_t count, room;
} mappings, functions; /* in order of their addresses; a runtime's in libc */

static char own_folder[PATH_MAX];

static void add(struct ranges *to, uint64_t start, uint64_t end, enum owner owner) {
    if (to->count == to->room) {
        size_t room = to->room ? to->room * 2 : 64;
        struct range *grown = realloc(to->list, room * sizeof *grown);
        if (grown == NULL) return;
        to->list = grown;
        to->room = room;
    }
    to->list[to->count++] = (struct range){start, end, owner};
}

static bool starts_with(const char *text, const char *word) { return !strncmp(text, word, strlen(word)); }

static bool is_runtime(const char *path) {
    static const char *const names[] = {"ld-", "ld.", "libgomp", "libomp", "libiomp5", "libpthread"};
    const char *name = strrchr(path, '/') + 1;
    size_t folder = strlen(own_folder);
    if (folder && !strncmp(path, own_folder, folder) && path + folder == name) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (starts_with(name, names[i])) return true;
    return false;
}

static bool is_libc(const char *path) {
    const char *name = strrchr(path, '/') + 1;
    return starts_with(name, "libc.") || starts_with(name, "libc-");
}

static bool of_threads(const char *name) {
    static const char *const words[] = {"pthread_", "__pthread_", "sem_", "thrd_", "mtx_", "cnd_", "__libc_start"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (starts_with(name, words[i])) return true;
    return false;
}

/* The exported functions of a mapped ELF file that are of threads, as they lie in memory. */
static void add_functions(const uint8_t *file, size_t bytes, uint64_t bias) {
    const Elf64_Ehdr *head = (const void *)file;
    if (bytes < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) || head->e_ident[EI_CLASS] != ELFCLASS64) return;
    const Elf64_Shdr *sections = (const void *)(file + head->e_shoff);
    if (head->e_shoff > bytes || head->e_shoff % 8 || (bytes - head->e_shoff) / sizeof *sections < head->e_shnum)
        return;
    for (unsigned i = 0; i < head->e_shnum; i++) {
        const Elf64_Shdr *s = &sections[i];
        if (s->sh_type != SHT_DYNSYM || s->sh_link >= head->e_shnum || s->sh_offset % 8) continue;
        const Elf64_Shdr *names = &sections[s->sh_link];
        if (s->sh_offset > bytes || s->sh_size > bytes - s->sh_offset) continue;
        if (names->sh_offset > bytes || names->sh_size > bytes - names->sh_offset || !names->sh_size) continue;
        const char *text = (const char *)file + names->sh_offset;
        if (text[names->sh_size - 1]) continue;
        for (size_t at = 0; at < s->sh_size / sizeof(Elf64_Sym); at++) {
            const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(file + s->sh_offset) + at;
            if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !symbol->st_value || !symbol->st_size ||
                symbol->st_size >= LONGEST_FUNCTION || symbol->st_name >= names->sh_size)
                continue;
            if (of_threads(text + symbol->st_name))
                add(&functions, bias + symbol->st_value, bias + symbol->st_value + symbol->st_size, RUNTIME);
        }
    }
}

static void read_functions(const char *path, uint64_t bias) {
    struct stat known;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    if (fstat(file, &known) == 0 && known.st_size > 0) {
        size_t bytes = (size_t)known.st_size;
        void *mapped = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
        if (mapped != MAP_FAILED) {
            add_functions(mapped, bytes, bias);
            munmap(mapped, bytes);
        }
    }
    close(file);
}

static enum owner owner_of(const char *path) {
    if (*path != '/') return PROGRAM;
    return is_runtime(path) ? RUNTIME : is_libc(path) ? LIBC : PROGRAM;
}

static void read_mappings(void) {
    static char line[PATH_MAX + 128];
    FILE *maps = fopen("/proc/self/maps", "re");
    mappings.count = functions.count = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long long start, end, offset;
        int at = 0;
        if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %n", &start, &end, &offset, &at) < 3 || !at) continue;
        char *path = line + at;
        path[strcspn(path, "\n")] = '\0';
        enum owner owner = owner_of(path);
        add(&mappings, start, end, owner);
        if (owner == LIBC && !offset) read_functions(path, start);
    }
    if (maps) fclose(maps);
}

static const struct range *range_of(uint64_t address) {
    size_t low = 0, high = mappings.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (mappings.list[middle].end <= address) low = middle + 1;
        else high = middle;
    }
    return low < mappings.count && mappings.list[low].start <= address ? &mappings.list[low] : NULL;
}

/* Whether code at an address of the host is a runtime's. */
bool em_runtime_code(uint64_t address) {
    const struct range *range = range_of(address);
    if (range == NULL) {
        read_mappings();
        range = range_of(address);
    }
    if (range == NULL || range->owner != LIBC) return range && range->owner == RUNTIME;
    for (size_t i = 0; i < functions.count; i++)
        if (functions.list[i].start <= address && address < functions.list[i].end) return true;
    return false;
}

/* Memory is unmapped: others may be mapped there. */
void em_runtime_forget(void) { mappings.count = functions.count = 0; }

void em_runtime_init(void) {
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)em_runtime_init, &info) || !info.dli_fname || !realpath(info.dli_fname, own_folder))
        own_folder[0] = '\0';
    char *name = strrchr(own_folder, '/');
    if (name) name[1] = '\0';
}
