/* Threads: bound at birth, read back, and unseen by the program.
 *
 * A runtime asks for its affinity to find out how many threads to make (libgomp, OpenBLAS, rayon). One that is
 * bound to one cpu would make one thread, so a thread that we bound is told the mask that the process started
 * with, until it sets a mask of its own.
 */
#include "enforce.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned char at_start[NF_MASK];
static long at_start_bytes;
static __thread bool bound __attribute__((tls_model("initial-exec")));

static void fill(unsigned char mask[NF_MASK], const uint32_t *cpus, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) mask[cpus[i] / 8] |= (unsigned char)(1u << cpus[i] % 8);
}

void nf_affinity_start(const uint32_t *cpus, uint32_t count) {
    unsigned char now[NF_MASK] = {0};
    at_start_bytes = syscall(SYS_sched_getaffinity, 0, sizeof now, now);
    if (count) fill(at_start, cpus, count);
    else memcpy(at_start, now, sizeof now);
}

int nf_bind(const uint32_t *cpus, uint32_t count, bool planned) {
    unsigned char mask[NF_MASK] = {0};
    if (!count) return 0;
    fill(mask, cpus, count);
    if (syscall(SYS_sched_setaffinity, 0, sizeof mask, mask)) return errno;
    bound = planned;
    return 0;
}

void nf_log_affinity(uint32_t thread, uint64_t path, int error, bool planned, bool later, pid_t tid) {
    unsigned char mask[NF_MASK];
    long bytes = syscall(SYS_sched_getaffinity, tid, sizeof mask, mask);
    while (bytes > 0 && !mask[bytes - 1]) bytes--;
    struct np_record record = {.kind = NP_APPLIED_THREAD, .thread = thread, .a = (uint32_t)error, .b = path};
    record.c = planned;
    record.d = later;
    np_log_text(&record, mask, bytes > 0 ? (size_t)bytes : 0);
}

static bool hidden(pid_t tid) { return bound && at_start_bytes > 0 && (tid == 0 || tid == gettid()); }

static int show_start(size_t bytes, cpu_set_t *mask) {
    if (bytes < (size_t)at_start_bytes) return EINVAL;
    memset(mask, 0, bytes);
    memcpy(mask, at_start, (size_t)at_start_bytes);
    return 0;
}

#define REAL(name, ...)                      \
    static int (*real)(__VA_ARGS__);         \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, name)

int sched_getaffinity(pid_t tid, size_t bytes, cpu_set_t *mask) {
    REAL("sched_getaffinity", pid_t, size_t, cpu_set_t *);
    if (!hidden(tid)) return real(tid, bytes, mask);
    int error = show_start(bytes, mask);
    if (error) errno = error;
    return error ? -1 : 0;
}

int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t *mask) {
    REAL("pthread_getaffinity_np", pthread_t, size_t, cpu_set_t *);
    return pthread_equal(thread, pthread_self()) && hidden(0) ? show_start(bytes, mask) : real(thread, bytes, mask);
}

int sched_setaffinity(pid_t tid, size_t bytes, const cpu_set_t *mask) {
    REAL("sched_setaffinity", pid_t, size_t, const cpu_set_t *);
    int result = real(tid, bytes, mask);
    if (result == 0 && (tid == 0 || tid == gettid())) bound = false;
    return result;
}

int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *mask) {
    REAL("pthread_setaffinity_np", pthread_t, size_t, const cpu_set_t *);
    int error = real(thread, bytes, mask);
    if (!error && pthread_equal(thread, pthread_self())) bound = false;
    return error;
}
