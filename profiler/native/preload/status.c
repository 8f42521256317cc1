/* What /proc says of this process and of those that it descends from. Read without libc: see maps.c. */
#include "processes.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { MOST_LEVELS = 64 };

/* The number after a name; 0 where the text has none. */
static uint32_t number_after(const char *text, const char *name) {
    for (const char *line = text; *line;) {
        const char *wanted = name;
        while (*wanted && *line == *wanted) line++, wanted++;
        if (!*wanted) {
            uint32_t value = 0;
            for (; *line == '\t'; line++) {}
            for (; *line >= '0' && *line <= '9'; line++) value = value * 10 + (uint32_t)(*line - '0');
            return value;
        }
        while (*line && *line++ != '\n') {}
    }
    return 0;
}

static void read_status(const char *path, char text[NP_PATH]) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : read(file, text, NP_PATH - 1);
    if (file >= 0) close(file);
    text[got > 0 ? got : 0] = 0;
}

uint32_t np_call_filters(void) {
    char text[NP_PATH];
    read_status("/proc/self/status", text);
    uint32_t filters = number_after(text, "Seccomp_filters:");
    return filters ? filters : number_after(text, "Seccomp:"); /* before Linux 5.9: at least whether there is one */
}

/* The parent of a process; 0: not known. */
static uint32_t parent_of(uint32_t pid, bool *is_perf) {
    char path[32] = "/proc/", text[NP_PATH];
    size_t at = strlen(path), digits = 1;
    for (uint32_t left = pid; left >= 10; left /= 10) digits++;
    for (size_t i = digits; i-- > 0; pid /= 10) path[at + i] = (char)('0' + pid % 10);
    strcpy(path + at + digits, "/status");
    read_status(path, text);
    *is_perf = !strncmp(text, "Name:\tperf\n", 11);
    return number_after(text, "PPid:");
}

uint32_t np_started_by(uint32_t starter) {
    uint32_t root = (uint32_t)getpid(), pid = (uint32_t)getppid();
    for (unsigned level = 0; pid != starter; level++) {
        bool is_perf = false;
        uint32_t parent = pid > 1 && level < MOST_LEVELS ? parent_of(pid, &is_perf) : 0;
        if (is_perf && parent == starter) break;
        if (!parent) return 0;
        root = pid;
        pid = parent;
    }
    return root;
}
