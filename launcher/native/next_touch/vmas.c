/* What is mapped where, with which rights: /proc/self/maps, read without an allocation. */
#include "next_touch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static uintptr_t hexadecimal(const char **at) {
    uintptr_t value = 0;
    for (;; ++*at) {
        unsigned digit = (unsigned char)**at;
        if (digit >= '0' && digit <= '9') digit -= '0';
        else if (digit >= 'a' && digit <= 'f') digit -= 'a' - 10;
        else return value;
        value = value << 4 | digit;
    }
}

static bool is_ours_to_mark(const char *line) {
    return !strstr(line, "[stack") && !strstr(line, "[v") && !strstr(line, "/anon_hugepage") &&
           !strstr(line, "/dev/") && !strstr(line, "/hugepages");
}

/* 7f00-7f10 rw-p 00000000 00:00 0  name */
static struct nt_vma parse(const char *line) {
    struct nt_vma vma = {.start = hexadecimal(&line)};
    line += *line == '-';
    vma.end = hexadecimal(&line);
    if (strlen(line) < 5) return vma;
    vma.protection =
        (line[1] == 'r' ? PROT_READ : 0) | (line[2] == 'w' ? PROT_WRITE : 0) | (line[3] == 'x' ? PROT_EXEC : 0);
    vma.markable = (vma.protection & PROT_READ) && !(vma.protection & PROT_EXEC) && is_ours_to_mark(line);
    return vma;
}

size_t nt_vmas(uintptr_t start, uintptr_t end, struct nt_vma *found, size_t room) {
    static char buffer[16384]; /* the lock's */
    int file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) return 0;
    size_t have = 0, count = 0;
    bool past = false;
    long got;
    while (!past && (got = syscall(SYS_read, file, buffer + have, sizeof buffer - 1 - have)) > 0) {
        have += (size_t)got;
        buffer[have] = 0;
        char *line = buffer, *newline;
        for (; !past && (newline = strchr(line, '\n')); line = newline + 1) {
            *newline = 0;
            struct nt_vma vma = parse(line);
            past = vma.start >= end || count == room;
            if (!past && vma.end > start) found[count++] = vma;
        }
        have = (size_t)(buffer + have - line);
        memmove(buffer, line, have);
    }
    syscall(SYS_close, file);
    return count;
}
