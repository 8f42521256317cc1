/* The kernel's own account of the births of tasks, by which the host tells whose counts are whose. */
#include "../plugin/marks.h"
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRACING "/sys/kernel/tracing/"
#define RECORD_NAMES TRACING "options/record-cmd"
#define LAB_FOLDER TRACING "instances/lab"
#define LAB LAB_FOLDER "/"
#define MOVES LAB "events/migrate/mm_migrate_pages/"
#define COMPACTION 0 /* enum migrate_reason */

static const char *const events[] = {
    LAB "events/task/task_newtask/enable", LAB "events/task/task_rename/enable", LAB "events/lab/new/enable",
    LAB "events/lab/exec/enable",          LAB "events/lab/exit/enable",
};
#define EVENTS (sizeof events / sizeof *events)

/* Runs in a new task's creator; in a task that becomes another program; in one that ends. */
static const char probes[] = "p:lab/new wake_up_new_task task=%di\np:lab/exec begin_new_exec\np:lab/exit do_exit\n";

/*
 * Tell the plugin where the two last ones are. The probes are only listed yet; when they are switched on the code is
 * changed, so QEMU translates it again, this time for a plugin that watches it.
 */
static unsigned send_stage_code(void) {
    char line[256];
    unsigned long long address;
    unsigned count = 0;
    FILE *list = fopen("/sys/kernel/debug/kprobes/list", "re");
    while (list && fgets(line, sizeof line, list))
        if ((strstr(line, " begin_new_exec+") || strstr(line, " do_exit+")) && sscanf(line, "%llx", &address) == 1) {
            guest_mark_with(MARK_STAGE_CODE, 1, (uint64_t[]){address});
            count++;
        }
    if (list) fclose(list);
    return count;
}

/*
 * What is switched on, by this and by arm(), is so once a boot, while nothing else runs: it changes the kernel's code,
 * and QEMU (7.2) can keep a stale translation of code that changes while another cpu translates it. A breakpoint that
 * the kernel has long removed then stays there for ever, and the guest hangs. For the same reason names of tasks are
 * not recorded: that changes the scheduler. An instance of our own, so that a program which traces too is not disturbed.
 */
void guest_trace_prepare(void) {
    guest_write_text(RECORD_NAMES, "0"); /* instances have this from when they are made */
    (void)!mkdir(LAB_FOLDER, 0700);
    guest_write_text(RECORD_NAMES, "1");
    guest_write_text(MOVES "trigger", "hist:keys=reason:vals=succeeded");
}

bool guest_trace_moves(struct guest_moves *moves) {
    char line[256];
    long long reason, hits, pages;
    memset(moves, 0, sizeof *moves);
    FILE *histogram = fopen(MOVES "hist", "re");
    bool counted = false;
    while (histogram && fgets(line, sizeof line, histogram))
        if (strstr(line, "trigger info:")) counted = true;
        else if (sscanf(line, "{ reason: %lld } hitcount: %lld succeeded: %lld", &reason, &hits, &pages) == 3)
            *(reason == COMPACTION ? &moves->compacted : &moves->others) += pages;
    if (histogram) fclose(histogram);
    return counted;
}

static void arm(void) {
    if (!guest_write_text(TRACING "kprobe_events", probes) || send_stage_code() != 2)
        guest_die("the kernel cannot trace the lives of tasks: %s", strerror(errno));
    guest_write_text(LAB "tracing_on", "0");
    guest_write_text(LAB "buffer_size_kb", "4096");
    guest_write_text(LAB "trace_clock", "mono");
    for (size_t i = 0; i < EVENTS; i++)
        if (!guest_write_text(events[i], "1")) guest_die("%s: %s", events[i], strerror(errno));
}

void guest_trace_start(void) {
    static bool armed;
    if (!armed) arm();
    armed = true;
    close(open(LAB "trace", O_WRONLY | O_TRUNC | O_CLOEXEC)); /* empties it */
    if (!guest_write_text(LAB "tracing_on", "1")) guest_die("tracing_on: %s", strerror(errno));
}

void guest_trace_stop(const char *target) {
    char buffer[65536];
    ssize_t got;
    guest_write_text(LAB "tracing_on", "0");
    int from = open(LAB "trace", O_RDONLY | O_CLOEXEC);
    int to = open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    while (from >= 0 && to >= 0 && (got = read(from, buffer, sizeof buffer)) > 0)
        if (write(to, buffer, (size_t)got) != got) break;
    close(from);
    close(to);
}
