/* From the initial file system to the host's file tree. */
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MODULES "/modules"
#define ROOT "/host"
#define PORT_WAIT_MS 20000

bool guest_write_text(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return ok;
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static int is_module(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* Their names sort in the order in which they need each other. */
void guest_load_modules(void) {
    struct dirent **names;
    int count = scandir(MODULES, &names, is_module, by_name);
    for (int i = 0; i < count; i++) {
        char path[512];
        snprintf(path, sizeof path, MODULES "/%s", names[i]->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
            guest_die("module %s: %s", names[i]->d_name, strerror(errno));
        close(fd);
        free(names[i]);
    }
    free(names);
}

static void mount_or_die(const char *source, const char *target, const char *type, const char *options) {
    if (mount(source, target, type, 0, options)) guest_die("mount %s: %s", target, strerror(errno));
}

void guest_enter_host_tree(void) {
    mkdir(ROOT, 0755);
    mount_or_die("root", ROOT, "9p", "trans=virtio,version=9p2000.L,msize=512000,cache=loose");
    if (chdir(ROOT) || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
        guest_die("cannot enter the host's files: %s", strerror(errno));
    mount_or_die("proc", "/proc", "proc", NULL);
    mount_or_die("sys", "/sys", "sysfs", NULL);
    mount_or_die("dev", "/dev", "devtmpfs", "mode=0755");
    mkdir("/dev/shm", 01777);
    mount_or_die("shm", "/dev/shm", "tmpfs", "mode=1777");
    mkdir("/dev/pts", 0755);
    mount_or_die("pts", "/dev/pts", "devpts", "mode=0620,ptmxmode=0666");
    /* Useful to programs, and not there on every kernel. */
    (void)!mount("debug", "/sys/kernel/debug", "debugfs", 0, NULL);
    (void)!mount("trace", "/sys/kernel/tracing", "tracefs", 0, NULL);
    (void)!mount("cgroup", "/sys/fs/cgroup", "cgroup2", 0, NULL);
    (void)!symlink("/proc/self/fd", "/dev/fd");
    (void)!symlink("/proc/self/fd/0", "/dev/stdin");
    (void)!symlink("/proc/self/fd/1", "/dev/stdout");
    (void)!symlink("/proc/self/fd/2", "/dev/stderr");
    guest_write_text("/proc/sys/kernel/perf_event_paranoid", "-1");
    guest_write_text("/proc/sys/kernel/kptr_restrict", "0");
    guest_write_text("/proc/sys/kernel/core_pattern", "core");
    guest_trace_prepare();
    /* It looks every 10 s, in which a machine does as much as we in many minutes, and makes huge pages again of what was
     * split to be moved: after weeks, if ever. */
    guest_write_text("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs", "2000000000");
    /* AutoNUMA leaves alone who has a policy: pages of ours that it marked in one run would move in a later one. */
    if (syscall(SYS_set_mempolicy, MPOL_LOCAL, NULL, 0UL)) guest_die("set_mempolicy: %s", strerror(errno));
}

/* The driver announces ports some time after it is loaded. */
int guest_open_port(enum guest_port port) {
    const struct timespec pause = {.tv_nsec = 5000000};
    char path[64];
    snprintf(path, sizeof path, "/dev/vport0p%d", port);
    for (int waited = 0; waited < PORT_WAIT_MS; waited += 5) {
        int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0) return fd;
        for (int device = 1; device < 8; device++) { /* another serial device may have come first */
            snprintf(path, sizeof path, "/dev/vport%dp%d", device, port);
            if ((fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)) >= 0) return fd;
        }
        snprintf(path, sizeof path, "/dev/vport0p%d", port);
        nanosleep(&pause, NULL);
    }
    guest_die("no serial port %d", port);
}
