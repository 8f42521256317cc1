/* Whether the kernel says that a thread sleeps. */
#include "emulate.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the kernel says of a thread; empty when it is gone. */
static void read_fact(uint32_t tid, const char *fact, char *text, size_t room) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/%s", tid, fact);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, room - 1);
    if (file >= 0) close(file);
    text[got > 0 ? got : 0] = '\0';
}

/* Whether a thread sleeps in its guest's system call, or is gone. It may sleep on a lock of QEMU's instead: that is a
 * futex call which the guest did not make. Where guest addresses are not the host's they differ by whole pages. */
bool em_thread_asleep(const struct em_thread *t) {
    char text[512];
    long number;
    unsigned long address;
    read_fact(t->record.tid, "stat", text, sizeof text);
    const char *state = strrchr(text, ')');
    if (state == NULL || state[1] == '\0' || state[2] != 'S')
        return state == NULL || state[1] == '\0' || state[2] == 'X' || state[2] == 'Z';
    read_fact(t->record.tid, "syscall", text, sizeof text);
    if (sscanf(text, "%ld %lx", &number, &address) != 2 || number != SYS_futex) return strncmp(text, "running", 7) != 0;
    return t->futex_state == FUTEX_ASLEEP && ((address ^ t->futex) & 0xfff) == 0;
}
