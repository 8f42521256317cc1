/*
 * Serves the virtual machine's memory samples to a program in the guest, one at a time (and the host's loop: remote.c).
 *
 * It connects to SAMPLER_SOCKET and sends requests of two 32-bit numbers, what and how. Each is answered by a 32-bit
 * length and so many bytes, which put together are what `perf record -o -` would write: START (period) by the head,
 * TAKE by the samples since. Those of our own process and the asking one are left out.
 */
#include "../plugin/marks.h"
#include "../plugin/samples.h"
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define DEVICES "/sys/bus/pci/devices/"
#define DRAIN_MS 250 /* rings must not fill while nobody asks */
#define ANSWER_SECONDS 10
#define MOMENT_TRIES 50

enum request { START = 1, TAKE = 2 };

static struct lab_samples_head *head; /* NULL: no such device */
static int client = -1;
static pid_t client_pid;
static struct guest_bytes stream;
static uint64_t lost_before, lost; /* the plugin's count at the last drain; ours and its since the last TAKE */

static bool device_has(const char *device, const char *file, unsigned wanted) {
    char path[512], text[32] = "";
    snprintf(path, sizeof path, DEVICES "%s/%s", device, file);
    FILE *source = fopen(path, "re");
    bool is = source && fgets(text, sizeof text, source) && strtoul(text, NULL, 16) == wanted;
    if (source) fclose(source);
    return is;
}

static struct lab_samples_head *map_device(const char *device) {
    char path[512];
    struct stat status;
    snprintf(path, sizeof path, DEVICES "%s/enable", device);
    guest_write_text(path, "1");
    snprintf(path, sizeof path, DEVICES "%s/resource2", device);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status)) guest_die("%s: %s", path, strerror(errno));
    void *memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory == MAP_FAILED || ((struct lab_samples_head *)memory)->magic != SAMPLES_MAGIC ? NULL : memory;
}

/* The device is QEMU's ivshmem. */
void guest_sampler_open(void) {
    DIR *folder = opendir(DEVICES);
    for (struct dirent *entry; folder && !head && (entry = readdir(folder));)
        if (device_has(entry->d_name, "vendor", 0x1af4) && device_has(entry->d_name, "device", 0x1110))
            head = map_device(entry->d_name);
    if (folder) closedir(folder);
}

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static struct guest_known_task ask_who(void) {
    guest_mark(MARK_SAMPLER);
    return (struct guest_known_task){head->task, getpid()};
}

/* The narrowest of some. */
struct guest_moment guest_sampler_moment(void) {
    struct guest_moment best = {0};
    for (int64_t tries = 0, least = INT64_MAX; head && tries < MOMENT_TRIES; tries++) {
        int64_t before = now_ns();
        guest_mark(MARK_SAMPLER);
        int64_t took = now_ns() - before;
        if (took >= least) continue;
        least = took;
        best = (struct guest_moment){before + took / 2, (int64_t)head->time_ns};
    }
    return best;
}

/* What to add to the host's time to have the guest's. */
static int64_t clock_shift(void) {
    struct guest_moment now = guest_sampler_moment();
    return now.guest_ns - now.host_ns;
}

static void take_one(const struct lab_sample *sample, int64_t shift) {
    struct guest_task_ids ids;
    if (!guest_tasks_find(sample->task, &ids)) lost++;
    else if (ids.pid != (uint32_t)getpid() && ids.pid != (uint32_t)client_pid)
        lost += !guest_stream_sample(&stream, sample, ids, shift);
}

static void drain(void) {
    int64_t shift = clock_shift();
    uint64_t lost_now = 0;
    guest_tasks_forget();
    for (unsigned v = 0; v < head->vcpus; v++) {
        struct lab_samples_ring *ring = &head->rings[v];
        uint64_t end = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
        for (uint64_t at = ring->tail; at != end; at++)
            take_one(&lab_samples_of(head, v)[at % head->ring_records], shift);
        __atomic_store_n(&ring->tail, end, __ATOMIC_RELEASE);
        lost_now += __atomic_load_n(&ring->lost, __ATOMIC_RELAXED);
    }
    lost += lost_now - lost_before;
    lost_before = lost_now;
}

static bool transfer(void *data, size_t bytes, bool out) {
    for (char *at = data; bytes > 0;) {
        ssize_t done = out ? send(client, at, bytes, MSG_NOSIGNAL) : recv(client, at, bytes, 0);
        if (done <= 0) return false;
        at += done;
        bytes -= (size_t)done;
    }
    return true;
}

static bool answer(void) {
    uint32_t length = (uint32_t)stream.used;
    bool ok = transfer(&length, sizeof length, true) && transfer(stream.data, stream.used, true);
    stream.used = 0;
    return ok;
}

static bool serve(void) {
    uint32_t request[2];
    if (!transfer(request, sizeof request, false)) return false;
    if (request[0] == START && request[1] > 0) {
        drain(); /* what was left by another */
        stream.used = 0;
        lost = 0;
        __atomic_store_n(&head->period, request[1], __ATOMIC_RELEASE);
        return guest_stream_begin(&stream) && answer();
    }
    if (request[0] != TAKE) return false;
    drain();
    guest_stream_lost(&stream, lost);
    lost = 0;
    return answer();
}

static void admit(int listener) {
    struct ucred who;
    socklen_t bytes = sizeof who;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 || client >= 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes)) {
        close(fd);
        return;
    }
    const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    client = fd;
    client_pid = who.pid;
}

static void dismiss(void) {
    __atomic_store_n(&head->period, 0, __ATOMIC_RELEASE);
    close(client);
    client = -1;
    stream.used = 0;
}

_Noreturn static void attend(int listener) {
    int remote = guest_remote_open();
    for (;;) {
        struct pollfd wants[] = {
            {.fd = listener, .events = POLLIN}, {.fd = client, .events = POLLIN}, {.fd = remote, .events = POLLIN}};
        poll(wants, 3, client >= 0 ? DRAIN_MS : -1);
        if (wants[2].revents & POLLIN) guest_remote_serve();
        if (client >= 0 && wants[1].revents) {
            if (!serve()) dismiss();
        } else if (client >= 0) {
            drain();
        }
        if (wants[0].revents) admit(listener);
    }
}

static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || chmod(path, 0666) || listen(fd, 4))
        guest_die("%s: %s", path, strerror(errno));
    return fd;
}

void guest_sampler_start(void) {
    int ready[2];
    char nothing;
    unlink(SAMPLER_SOCKET);
    if (!head) return;
    const struct guest_known_task agent = ask_who();
    if (pipe2(ready, O_CLOEXEC)) guest_die("pipe: %s", strerror(errno));
    if (fork() == 0) {
        guest_mark(MARK_EXCLUDE);
        if (!guest_tasks_learn((struct guest_known_task[]){agent, ask_who()}, 2))
            _exit(1); /* a kernel without /proc/kcore: the lab counts without a sampler */
        head->period = 0;
        guest_stream_learn_nodes();
        int listener = listen_at(SAMPLER_SOCKET);
        close(ready[0]);
        close(ready[1]);
        attend(listener);
    }
    close(ready[1]);
    (void)!read(ready[0], &nothing, 1); /* until it listens */
    close(ready[0]);
}
