/* The kernel's own account of the births of tasks, by which the host tells whose counts are whose. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest.h"

#define TRACING "/sys/kernel/tracing/"
#define LAB TRACING "instances/lab/"

static const char *const events[] = {
    LAB "events/task/task_newtask/enable",
    LAB "events/task/task_rename/enable",
    LAB "events/lab/new/enable",
};

/* An instance of our own, so that a program which traces too is not disturbed. */
void trace_start(void) {
    if (mkdir(TRACING "instances/lab", 0700) == 0 && !write_text(TRACING "kprobe_events", "p:lab/new wake_up_new_task task=%di"))
        die("the kernel cannot trace new tasks: %s", strerror(errno));
    write_text(LAB "buffer_size_kb", "4096");
    write_text(LAB "trace_clock", "global");
    (void)!truncate(LAB "trace", 0);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (!write_text(events[i], "1"))
            die("%s: %s", events[i], strerror(errno));
}

void trace_stop(const char *target) {
    char buffer[65536];
    ssize_t got;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        write_text(events[i], "0");
    int from = open(LAB "trace", O_RDONLY | O_CLOEXEC);
    int to = open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    while (from >= 0 && to >= 0 && (got = read(from, buffer, sizeof buffer)) > 0)
        if (write(to, buffer, (size_t)got) != got)
            break;
    close(from);
    close(to);
}
