/* Whether this library can be loaded into a program: not into one that is static or Go's, and a program of another C
 * library or word size would not even start with it.
 */
#include "exec.h"
#include "preload.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { SEGMENTS = 64, NAME = 256, NOTES = 1024, SCRIPTS = 4, GO_BUILD_ID = 4 };

#if !defined __GLIBC__
static const char LINKER[] = "ld-musl-";
#elif defined __aarch64__
static const char LINKER[] = "ld-linux-aarch64.so.1";
#else
static const char LINKER[] = "ld-linux-x86-64.so.2";
#endif

static bool is_go(int file, const Elf64_Phdr *segment) {
    char notes[NOTES];
    ssize_t bytes = pread(file, notes, segment->p_filesz < NOTES ? segment->p_filesz : NOTES, (off_t)segment->p_offset);
    for (ssize_t at = 0; at + (ssize_t)sizeof(Elf64_Nhdr) + 4 <= bytes;) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        at += (ssize_t)sizeof note;
        if (note.n_type == GO_BUILD_ID && note.n_namesz == 4 && !memcmp(notes + at, "Go", 3)) return true;
        if (note.n_namesz > NOTES || note.n_descsz > NOTES) return false;
        at += (ssize_t)(((note.n_namesz + 3) & ~3u) + ((note.n_descsz + 3) & ~3u));
    }
    return false;
}

static bool is_ours(int file, const Elf64_Phdr *segment) {
    char name[NAME] = "";
    if (pread(file, name, segment->p_filesz < NAME - 1 ? segment->p_filesz : NAME - 1, (off_t)segment->p_offset) <= 0)
        return true;
    const char *base = strrchr(name, '/');
    return !strncmp(base ? base + 1 : name, LINKER, strlen(LINKER));
}

static enum np_fit fit_of_elf(const char *path, const char *head) {
    const Elf64_Ehdr *elf = (const void *)head;
    Elf64_Phdr segments[SEGMENTS];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return NP_FITS;
    size_t wanted = sizeof *segments * (elf->e_phnum < SEGMENTS ? elf->e_phnum : SEGMENTS);
    ssize_t got = elf->e_phentsize == sizeof *segments ? pread(file, segments, wanted, (off_t)elf->e_phoff) : -1;
    enum np_fit fit = got < 0 ? NP_FITS : NP_CLOSED;
    for (size_t i = 0; got > 0 && i < (size_t)got / sizeof *segments && fit != NP_GO; i++) {
        if (segments[i].p_type == PT_INTERP) fit = is_ours(file, &segments[i]) ? NP_FITS : NP_FOREIGN;
        if (segments[i].p_type == PT_NOTE && is_go(file, &segments[i])) fit = NP_GO;
    }
    close(file);
    return fit;
}

static bool gains_privileges(const char *path) {
    struct stat facts;
    if (stat(path, &facts)) return false;
    return (facts.st_mode & S_ISUID && facts.st_uid != geteuid()) ||
           (facts.st_mode & S_ISGID && facts.st_mode & S_IXGRP && facts.st_gid != getegid()) ||
           (geteuid() && getxattr(path, "security.capability", NULL, 0) > 0);
}

enum np_fit np_fit_of(const char *path) {
    char heads[2][NP_HEAD], *program = (char *)path, *argument;
    for (int depth = 0; depth <= SCRIPTS; depth++) {
        char *head = heads[depth % 2]; /* the other holds the name of what is looked at */
        switch (np_kind_of(program, head)) {
        case 'e': return gains_privileges(program) ? NP_PRIVILEGED : fit_of_elf(program, head);
        case '3': return NP_FOREIGN;
        case '#':
            if (np_interpreter(head, &program, &argument)) continue;
            return NP_FITS;
        default: return NP_FITS;
        }
    }
    return NP_FITS;
}

static bool is_us(const char *path, size_t length) {
    size_t name = strlen(np_hooks.library);
    return length > name && path[length - name - 1] == '/' && !memcmp(path + length - name, np_hooks.library, name);
}

const char *np_preload_of_us(const char *list, size_t *length) {
    for (; *list; list += *length, list += strspn(list, ": ")) {
        *length = strcspn(list, ": ");
        if (is_us(list, *length)) return list;
    }
    return NULL;
}

char *np_preload_without_us(const char *list, char *to) {
    size_t used = 0;
    for (; *list; list += strspn(list, ": ")) {
        size_t length = strcspn(list, ": ");
        if (!is_us(list, length)) {
            if (used) to[used++] = ':';
            memcpy(to + used, list, length);
            used += length;
        }
        list += length;
    }
    to[used] = 0;
    return to;
}
