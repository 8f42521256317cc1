/* What the process has mapped, by /proc/self/maps.
 *
 * Read without libc: what its functions access for us would be recorded as the program's, and it is the more the more
 * lines there are, which depends on the kernel and on the emulator.
 */
#include "preload.h"

#include <fcntl.h>
#include <unistd.h>

static unsigned long read_hex(const char **text) {
    unsigned long value = 0;
    for (;; (*text)++) {
        unsigned digit = (unsigned)**text - '0', letter = (unsigned)**text - 'a';
        if (digit > 9 && letter > 5) return value;
        value = value << 4 | (digit <= 9 ? digit : letter + 10);
    }
}

static const char *next_field(const char *text) {
    while (*text && *text != ' ') text++;
    while (*text == ' ') text++;
    return text;
}

/* START-END MODE OFFSET DEVICE INODE [NAME] */
static bool read_line(const char *line, struct np_mapping *mapping) {
    static const char heap[] = "[heap]";
    mapping->start = read_hex(&line);
    if (*line++ != '-') return false;
    mapping->end = read_hex(&line);
    const char *mode = next_field(line);
    mapping->readable = mode[0] == 'r';
    mapping->writable = mode[0] && mode[1] == 'w';
    mapping->shared = mapping->writable && mode[2] && mode[3] == 's';
    const char *inode = next_field(next_field(next_field(mode))), *name = next_field(inode);
    size_t same = 0;
    while (heap[same] && name[same] == heap[same]) same++;
    mapping->anonymous = inode[0] == '0' && (!inode[1] || inode[1] == ' ') && (!*name || !heap[same]);
    return true;
}

void np_maps(bool (*see)(const struct np_mapping *mapping, void *context), void *context) {
    static char buffer[16384]; /* called when there is one thread, and by the last */
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    size_t have = 0;
    bool more = true;
    ssize_t got;
    while (more && have < sizeof buffer - 1 && (got = read(file, buffer + have, sizeof buffer - 1 - have)) > 0) {
        char *line = buffer, *end = buffer + have + got;
        for (char *at = buffer + have; at < end && more; at++) {
            struct np_mapping mapping;
            if (*at != '\n') continue;
            *at = 0;
            more = !read_line(line, &mapping) || see(&mapping, context);
            line = at + 1;
        }
        have = (size_t)(end - line);
        for (size_t i = 0; i < have; i++) buffer[i] = line[i];
    }
    close(file);
}
