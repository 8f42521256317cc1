/* The cpus that the program sees: those of the machine that is modelled, as programs make their threads by them.
 *
 * The kernel answers for the host's cpus, and what it has written is written over when the call returns. Where the
 * program sets an affinity the kernel is given the host's cpus instead, for it knows no others: QEMU's threads stay
 * free, and what was asked for is kept here for who asks again. A program that looks at the host's nodes or cores in
 * sysfs (hwloc, so mpirun) and then sets all cpus of the host means all that there are.
 */
#include "emulate.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = MAX_SHOWN_CPU / 8, KEPT = 1024, PATH = 64 };

struct mask {
    uint8_t bytes[BYTES];
};

struct kept { /* what the program set for a thread */
    uint32_t tid; /* 0: free */
    struct mask mask;
};

struct call { /* under way */
    enum em_syscall_kind kind;
    uint32_t tid; /* whose affinity it is about */
    bool valid;
    uint64_t address;
    size_t bytes;
    struct mask given; /* what the program wrote */
};

static struct mask shown, host;
static uint32_t count; /* of cpus shown, 0: nothing is done here */
static bool knows_host; /* as this program has looked */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept kept[KEPT];
static uint32_t newest;

/* A thread's own: allocated by the loader at its first call of this kind. */
static __thread struct call call;
static __thread uint32_t self;

bool em_cpus_shown(void) { return count > 0; }

/* `0-3:8-11` */
bool em_cpus_option(const char *value) {
    for (char *end = (char *)value; *value; value = end + (*end == ':')) {
        unsigned long first = strtoul(value, &end, 10), last = first;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        if ((*end && *end != ':') || first > last || last >= MAX_SHOWN_CPU) return false;
        for (; first <= last; first++, count++) shown.bytes[first / 8] |= (uint8_t)(1u << first % 8);
    }
    return sched_getaffinity(0, sizeof host, (cpu_set_t *)&host) == 0 || errno == EINVAL;
}

static void look_at_path(uint64_t address) {
    char path[PATH + 1] = "";
    if (em_memory_read(address, path, PATH) > 0)
        knows_host = strstr(path, "devices/system/cpu/cpu") || strstr(path, "devices/system/node/node");
}

/* ---- what the program set; with the lock ---- */

static struct kept *find(uint32_t tid) {
    for (uint32_t i = 0; i < KEPT; i++)
        if (kept[i].tid == tid) return &kept[i];
    return NULL;
}

static void keep(uint32_t tid, const struct mask *mask) {
    struct kept *place = find(tid);
    if (!place) place = find(0);
    if (!place) place = &kept[newest++ % KEPT]; /* of the longest ago, most likely of a thread that is gone */
    place->tid = tid;
    place->mask = *mask;
}

static struct mask mask_of(uint32_t tid) {
    pthread_mutex_lock(&lock);
    const struct kept *own = find(tid);
    struct mask mask = own ? own->mask : shown;
    pthread_mutex_unlock(&lock);
    return mask;
}

/* A new thread has its parent's; what is kept under its number is of one that is gone. */
static void inherit(uint32_t child) {
    pthread_mutex_lock(&lock);
    struct kept *own = find(self), *old = find(child);
    struct mask mask = own ? own->mask : shown;
    if (own) keep(child, &mask);
    else if (old) old->tid = 0;
    pthread_mutex_unlock(&lock);
}

/* Of a forked process only this thread is left. */
void em_cpus_forked(void) {
    pthread_mutex_init(&lock, NULL);
    struct kept *own = self ? find(self) : NULL;
    struct mask mask = own ? own->mask : shown;
    memset(kept, 0, sizeof kept);
    self = (uint32_t)gettid();
    if (own) keep(self, &mask);
}

/* ---- across exec: by a file ---- */

static void path_of(char path[], size_t room, pid_t pid) {
    snprintf(path, room, "%s/cpus-%d", em_options.dir, (int)pid);
}

void em_cpus_init(void) {
    char path[sizeof em_options.dir + 32];
    struct mask mask;
    if (!count) return;
    self = (uint32_t)getpid();
    path_of(path, sizeof path, getpid());
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) unlink(path);
    else
        path_of(path, sizeof path, getppid()), file = open(path, O_RDONLY | O_CLOEXEC); /* a shell that runs as it is */
    if (file < 0) return;
    if (read(file, &mask, sizeof mask) == sizeof mask) keep(self, &mask);
    close(file);
}

static void leave_word(void) {
    char path[sizeof em_options.dir + 32];
    struct mask mask = mask_of(self);
    if (!memcmp(&mask, &shown, sizeof mask)) return;
    path_of(path, sizeof path, getpid());
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return;
    if (write(file, &mask, sizeof mask) != sizeof mask) unlink(path);
    close(file);
}

/* ---- calls ---- */

/* The kernel is to take what it knows: the host's cpus, or none where the program wants none of those that it sees. */
static void replace_given(void) {
    bool any = false;
    if (em_memory_read(call.address, call.given.bytes, call.bytes) != call.bytes) {
        call.bytes = 0;
        return;
    }
    for (size_t i = 0; i < call.bytes; i++) any |= (call.given.bytes[i] & shown.bytes[i]) != 0;
    struct mask none = {{0}};
    if (!em_memory_write(call.address, any ? host.bytes : none.bytes, call.bytes)) call.bytes = 0;
}

void em_cpus_asked(int64_t number, uint64_t a1, uint64_t a2, uint64_t a3) {
    if (!count || !em_memory_seen()) return;
    if (number == CPUS_CALL) em_memory_write(a1, &count, sizeof count);
    enum em_syscall_kind kind = em_guest_syscall(number);
    if (!knows_host && (kind == CALL_OPEN || kind == CALL_OPENAT)) look_at_path(kind == CALL_OPEN ? a1 : a2);
    if (kind != CALL_AFFINITY && kind != CALL_SET_AFFINITY && kind != CALL_CLONE && kind != CALL_CLONE3 &&
        kind != CALL_FORK && kind != CALL_EXEC)
        return;
    if (!self) self = (uint32_t)gettid();
    call.kind = kind;
    call.valid = true;
    if (kind == CALL_EXEC) leave_word();
    if (kind != CALL_AFFINITY && kind != CALL_SET_AFFINITY) return;
    call.tid = a1 ? (uint32_t)a1 : self;
    call.bytes = a2 < BYTES ? (size_t)a2 : BYTES;
    call.address = a3;
    if (kind == CALL_SET_AFFINITY) replace_given();
}

static void answer_set(int64_t result) {
    struct mask mask = shown;
    if (!call.bytes) return;
    em_memory_write(call.address, call.given.bytes, call.bytes);
    if (result != 0) return;
    if (!knows_host || memcmp(call.given.bytes, host.bytes, call.bytes) != 0) {
        memset(&mask, 0, sizeof mask);
        for (size_t i = 0; i < call.bytes; i++) mask.bytes[i] = call.given.bytes[i] & shown.bytes[i];
    }
    pthread_mutex_lock(&lock);
    keep(call.tid, &mask);
    pthread_mutex_unlock(&lock);
}

/* As much as the kernel has written: how much that is, the program knows already. */
static void answer_get(int64_t result) {
    struct mask mask = mask_of(call.tid);
    if (result <= 0) return;
    em_memory_write(call.address, mask.bytes, (size_t)result < BYTES ? (size_t)result : BYTES);
}

void em_cpus_answered(int64_t result) {
    if (!count || !call.valid) return;
    call.valid = false;
    if (call.kind == CALL_SET_AFFINITY) answer_set(result);
    else if (call.kind == CALL_AFFINITY) answer_get(result);
    else if (call.kind != CALL_EXEC && result > 0) inherit((uint32_t)result);
}
