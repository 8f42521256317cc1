/*
 * Does for a loop on the host what it asks for: says who runs where and where pages are, moves both. The port outlives
 * runs, so each conversation begins anew with HELLO and a number, and what was left of the one before is passed over.
 */
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HELLO UINT64_C(0x6f6c6c65682d6e6e) /* "nn-hello" */
#define MOVE 2                              /* MPOL_MF_MOVE */
#define MOST (32u << 20)
#define MASK_BYTES 128u

enum { LOOK = 1, NAMES, PAGES, BIND, READ };

struct request {
    uint32_t what, bytes; /* of what follows it */
    int32_t id, node;
};

static int port = -1;
static struct guest_bytes answer;

static bool transfer(void *data, size_t bytes, bool out) {
    for (char *at = data; bytes > 0;) {
        ssize_t done = out ? write(port, at, bytes) : read(port, at, bytes);
        if (done < 0 && (errno == EAGAIN || errno == EINTR)) {
            poll(&(struct pollfd){.fd = port, .events = out ? POLLOUT : POLLIN}, 1, -1);
            continue;
        }
        if (done <= 0) return false;
        at += done;
        bytes -= (size_t)done;
    }
    return true;
}

static void add(const void *data, size_t bytes) {
    if (!guest_bytes_add(&answer, data, bytes)) guest_die("the host asks for too much");
}

static bool read_file(const char *path, char *text, size_t room) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, room - 1) : -1;
    if (fd >= 0) close(fd);
    if (got < 0) return false;
    text[got] = '\0';
    return true;
}

/* The field of /proc/…/stat so many behind the thread's state. */
static long field_of(const char *stat, int number) {
    const char *at = strrchr(stat, ')');
    for (at = at ? at + 1 : NULL; at && number > 0; number--) at = strchr(at + 1, ' ');
    return at ? atol(at + 1) : -1;
}

static void look_at_thread(const char *pid, const char *tid) {
    char path[96], text[1024], line[128];
    unsigned long long ran, waited;
    uint64_t mask[MASK_BYTES / 8] = {0};
    snprintf(path, sizeof path, "/proc/%.16s/task/%.16s/stat", pid, tid);
    if (!read_file(path, text, sizeof text)) return;
    long cpu = field_of(text, 36);
    snprintf(path, sizeof path, "/proc/%.16s/task/%.16s/schedstat", pid, tid);
    if (!read_file(path, text, sizeof text) || sscanf(text, "%llu %llu", &ran, &waited) != 2) return;
    if (syscall(SYS_sched_getaffinity, atoi(tid), sizeof mask, mask) < 0) return;
    add(line, (size_t)snprintf(line, sizeof line, "%.16s %.16s %ld %llu %llu ", pid, tid, cpu, ran, waited));
    for (int word = 3; word >= 0; word--)
        add(line, (size_t)snprintf(line, sizeof line, "%016llx", (unsigned long long)mask[word]));
    add("\n", 1);
}

static void look_at_process(const char *pid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%.16s/stat", pid);
    if (!read_file(path, text, sizeof text)) return;
    const char *state = strrchr(text, ')');
    if (!state || field_of(text, 1) == 2 || strchr("ZX", state[2])) return; /* kernel threads are those of 2 */
    snprintf(path, sizeof path, "/proc/%.16s/task", pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.') look_at_thread(pid, entry->d_name);
    if (folder) closedir(folder);
}

/* All processes but the kernel's and the agent's: a line for each thread. */
static void look(void) {
    struct timespec time;
    char line[64];
    DIR *folder = opendir("/proc");
    clock_gettime(CLOCK_MONOTONIC, &time);
    add(line, (size_t)snprintf(line, sizeof line, "%lld\n", time.tv_sec * 1000000000LL + time.tv_nsec));
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        int pid = atoi(entry->d_name);
        if (pid > 2 && pid != getpid()) look_at_process(entry->d_name);
    }
    if (folder) closedir(folder);
}

static void name_tasks(const uint64_t *tasks, size_t count) {
    guest_tasks_forget();
    for (size_t i = 0; i < count; i++) {
        struct guest_task_ids ids = {0};
        if (!guest_tasks_find(tasks[i], &ids)) ids = (struct guest_task_ids){0};
        add(&ids, sizeof ids);
    }
}

/* Where the pages are; where they are after moving them, if they are to be. */
static void place_pages(const struct request *request, uint64_t *pages) {
    size_t count = request->bytes / sizeof *pages;
    int32_t *status = calloc(count + 1, sizeof *status), *nodes = calloc(count + 1, sizeof *nodes), error = 0;
    if (!status || !nodes) guest_die("out of memory");
    for (size_t i = 0; i < count; i++) {
        nodes[i] = request->node;
        status[i] = -ENOENT;
    }
    if (count && syscall(SYS_move_pages, request->id, count, pages, request->node < 0 ? NULL : nodes, status, MOVE) < 0)
        error = errno;
    add(&error, sizeof error);
    add(status, count * sizeof *status);
    free(status);
    free(nodes);
}

static void bind_thread(const struct request *request, const void *mask) {
    int32_t error = syscall(SYS_sched_setaffinity, request->id, request->bytes, mask) < 0 ? errno : 0;
    add(&error, sizeof error);
}

static void send_file(const char *path) {
    char data[4096];
    ssize_t got;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (got = read(fd, data, sizeof data)) > 0) add(data, (size_t)got);
    if (fd >= 0) close(fd);
}

static bool greet(void) {
    uint64_t seen = 0, greeting[2] = {HELLO, 0};
    while (seen != HELLO) {
        unsigned char byte;
        if (!transfer(&byte, 1, false)) return false;
        seen = seen >> 8 | (uint64_t)byte << 56;
    }
    return transfer(&greeting[1], sizeof greeting[1], false) && transfer(greeting, sizeof greeting, true);
}

static bool serve_one(void) {
    struct request request;
    char *data = NULL;
    bool ok = transfer(&request, sizeof request, false) && request.bytes <= MOST &&
              (data = calloc(1, request.bytes + 1)) && transfer(data, request.bytes, false);
    answer.used = 0;
    if (ok && request.what == LOOK) look();
    else if (ok && request.what == NAMES) name_tasks((void *)data, request.bytes / sizeof(uint64_t));
    else if (ok && request.what == PAGES) place_pages(&request, (void *)data);
    else if (ok && request.what == BIND) bind_thread(&request, data);
    else if (ok && request.what == READ) send_file(data);
    uint32_t length = (uint32_t)answer.used;
    ok = ok && transfer(&length, sizeof length, true) && transfer(answer.data, answer.used, true);
    free(data);
    return ok;
}

int guest_remote_open(void) { return port = guest_open_port(PORT_ONLINE); }

void guest_remote_serve(void) {
    static bool greeted;
    if (!greeted) greeted = greet();
    else if (!serve_one()) greeted = false;
}
