/* Whether the kernel says that a thread sleeps, or runs. */
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

/* The letter for its state; 0 when it is gone. */
static char state_of(const struct em_thread *t) {
    char text[512];
    read_fact(t->record.tid, "stat", text, sizeof text);
    const char *state = strrchr(text, ')');
    return state == NULL || state[1] == '\0' ? '\0' : state[2];
}

/* Whether a thread has only to get a cpu, or a page from a disk, to go on. */
bool em_thread_runs(const struct em_thread *t) {
    char state = state_of(t);
    return state == 'R' || state == 'D';
}

/* Whether a thread sleeps in its guest's system call, or is gone. It may sleep on a lock of QEMU's instead: that is a
 * futex call which the guest did not make. Where guest addresses are not the host's they differ by whole pages. */
bool em_thread_asleep(const struct em_thread *t) {
    char text[512];
    long number;
    unsigned long address;
    char state = state_of(t);
    if (state != 'S') return state == '\0' || state == 'X' || state == 'Z';
    read_fact(t->record.tid, "syscall", text, sizeof text);
    if (sscanf(text, "%ld %lx", &number, &address) != 2 || number != SYS_futex) return strncmp(text, "running", 7) != 0;
    return t->futex_state == FUTEX_ASLEEP && ((address ^ t->futex) & 0xfff) == 0;
}
