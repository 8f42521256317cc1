/* Threads: bound at birth, read back, and unseen by the program.
 *
 * A runtime asks for its affinity to find out how many threads to make (libgomp, OpenBLAS, rayon). One that is
 * bound to one cpu would make one thread, so a thread that we bound is told the mask that the process started
 * with, until it sets a mask of its own.
 */
#include "enforce.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* As the report names them (launch/finish.py). */
static const char *const variables[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};
static unsigned char at_start[PT_MASK];
static long at_start_bytes;
static bool overrides; /* --override: the program's own wishes are not granted */
static bool by_variables; /* OpenMP's runtimes choose cpus where they are told to: against those the plan wins */
static struct living {
    _Atomic pid_t tid;
    uint32_t thread;
} *planned_threads;
static uint32_t planned_count;

static NP_THREAD const uint32_t *plan_cpus; /* cpus of the plan, NULL where it does not name this thread */
static NP_THREAD uint32_t plan_cpu_count;
static NP_THREAD bool bound; /* to them, and not by its own wish to others */
static NP_THREAD bool ours; /* its mask is one that we gave it, planned or not */

/* The kernel itself, past our own syscall(). */
static long kernel(long number, long tid, long bytes, void *mask) {
    NP_REAL(long, "syscall", long, ...);
    return real(number, tid, bytes, mask);
}

/* A process that another of ours made began with a mask that we gave that one; the first may have been started on its
 * cpus, or on those that somebody else chose for it.
 */
void nf_affinity_start(const struct pt_table *table, const struct pt_thread *all, const struct pt_thread *own) {
    unsigned char now[PT_MASK] = {0}, given[PT_MASK];
    at_start_bytes = kernel(SYS_sched_getaffinity, 0, sizeof now, now);
    overrides = getenv("NUMAPLAN_OVERRIDE") != NULL;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) by_variables |= getenv(variables[i]) != NULL;
    bool ours_now = np_process_entry() != 0;
    if (own && !ours_now) {
        pt_fill_mask(&table->cpus[own->first_cpu], own->cpus, given);
        ours_now = !memcmp(now, given, sizeof now);
    }
    if (all && all->cpus && ours_now) pt_fill_mask(&table->cpus[all->first_cpu], all->cpus, at_start);
    else memcpy(at_start, now, sizeof now);
}

/* Runtimes bind themselves to each cpu in turn to look at it, and then to all that they found at their start (hwloc,
 * libomp): who asks for all has no wish of its own.
 */
static bool covers_start_mask(const void *mask, size_t bytes) {
    const unsigned char *byte = mask;
    for (size_t i = 0; i < sizeof at_start; i++)
        if (at_start[i] & ~(i < bytes ? byte[i] : 0)) return false;
    return true;
}

int nf_bind(const uint32_t *cpus, uint32_t count, bool planned) {
    unsigned char mask[PT_MASK];
    plan_cpus = planned ? cpus : NULL;
    plan_cpu_count = count;
    bound = false;
    if (!count) return 0;
    pt_fill_mask(cpus, count, mask);
    if (kernel(SYS_sched_setaffinity, 0, sizeof mask, mask)) return errno;
    bound = planned;
    ours = true;
    return 0;
}

bool nf_bind_made(pid_t tid, const uint32_t *cpus, uint32_t count) {
    unsigned char mask[PT_MASK];
    pt_fill_mask(cpus, count, mask);
    return kernel(SYS_sched_setaffinity, tid, sizeof mask, mask) == 0;
}

void nf_bound_from_outside(const uint32_t *cpus, uint32_t count, bool planned) {
    plan_cpus = planned ? cpus : NULL;
    plan_cpu_count = count;
    bound = planned && count;
    ours = count;
}

bool nf_keeps_own(const uint32_t *cpus, uint32_t count, bool planned) {
    unsigned char now[PT_MASK] = {0};
    if (overrides || by_variables) return false;
    if (kernel(SYS_sched_getaffinity, 0, sizeof now, now) < 0 || covers_start_mask(now, sizeof now)) return false;
    plan_cpus = planned ? cpus : NULL;
    plan_cpu_count = count;
    bound = ours = false;
    return true;
}

void nf_free_all_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    while (tasks && at_start_bytes > 0 && (entry = readdir(tasks)))
        if (*entry->d_name != '.') kernel(SYS_sched_setaffinity, atoi(entry->d_name), sizeof at_start, at_start);
    if (tasks) closedir(tasks);
}

bool nf_unbind(const uint32_t *cpus, uint32_t count, unsigned char before[PT_MASK]) {
    unsigned char next[PT_MASK];
    if (!ours || at_start_bytes <= 0) return false;
    memset(before, 0, PT_MASK);
    if (kernel(SYS_sched_getaffinity, 0, PT_MASK, before) < 0) return false;
    if (count) pt_fill_mask(cpus, count, next);
    return kernel(SYS_sched_setaffinity, 0, sizeof at_start, count ? next : at_start) == 0;
}

void nf_bind_again(unsigned char before[PT_MASK]) { kernel(SYS_sched_setaffinity, 0, PT_MASK, before); }

void nf_log_affinity(uint32_t thread, uint64_t path, int error, enum nf_named named, bool later, pid_t tid) {
    unsigned char mask[PT_MASK];
    long bytes = kernel(SYS_sched_getaffinity, tid, sizeof mask, mask);
    while (bytes > 0 && !mask[bytes - 1]) bytes--;
    struct np_record record = {.kind = NF_APPLIED_THREAD, .thread = thread, .a = (uint32_t)error, .b = path};
    record.c = named;
    record.d = later;
    np_log_text(&record, mask, bytes > 0 ? (size_t)bytes : 0);
}

/* ---- planned threads ---- */

bool nf_planned_open(uint32_t count) {
    planned_threads = calloc((size_t)count + 1, sizeof *planned_threads);
    planned_count = planned_threads ? count : 0;
    return planned_threads;
}

void nf_planned_started(uint32_t number, uint32_t thread, pid_t tid) {
    planned_threads[number].thread = thread;
    atomic_store(&planned_threads[number].tid, tid);
}

void nf_planned_ended(uint32_t number) { atomic_store(&planned_threads[number].tid, 0); }

pid_t nf_planned_take(uint32_t number, uint32_t *thread) {
    *thread = planned_threads[number].thread;
    return atomic_exchange(&planned_threads[number].tid, 0);
}

void nf_planned_forked(void) {
    for (uint32_t i = 0; i < planned_count; i++)
        if (planned_threads[i].tid != gettid()) planned_threads[i].tid = 0;
}

static bool is_planned(pid_t tid) {
    for (uint32_t i = 0; i < planned_count; i++)
        if (atomic_load_explicit(&planned_threads[i].tid, memory_order_relaxed) == tid) return true;
    return false;
}

/* ---- what the program asks for ----
 *
 * Libraries may ask before our constructor has run (libgomp's), when the thread is on its cpus already: np_active() first.
 */

static bool is_self(pid_t tid) { return tid == 0 || tid == np_tid(); }

static bool hidden(pid_t tid) { return np_active() && bound && at_start_bytes > 0 && is_self(tid); }

/* In place of what the kernel said. */
static void show_start(size_t bytes, void *mask) {
    memset(mask, 0, bytes);
    memcpy(mask, at_start, bytes < sizeof at_start ? bytes : sizeof at_start);
}

/* Whether a planned thread is where the plan has it, whatever it or another asked for. */
static bool keeps_plan(pid_t tid, const void *mask, size_t bytes) {
    if (np_sandboxed() || !np_active() || !mask || !(is_self(tid) ? plan_cpus != NULL : is_planned(tid))) return false;
    if (!covers_start_mask(mask, bytes)) return overrides;
    return !is_self(tid) || bound || nf_bind(plan_cpus, plan_cpu_count, true) == 0;
}

static void note_own_mask(pid_t tid) {
    if (is_self(tid)) bound = ours = false;
}

int sched_getaffinity(pid_t tid, size_t bytes, cpu_set_t *mask) {
    NP_REAL(int, "sched_getaffinity", pid_t, size_t, cpu_set_t *);
    int result = real(tid, bytes, mask);
    if (result == 0 && hidden(tid)) show_start(bytes, mask);
    return result;
}

int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t *mask) {
    NP_REAL(int, "pthread_getaffinity_np", pthread_t, size_t, cpu_set_t *);
    int error = real(thread, bytes, mask);
    if (!error && pthread_equal(thread, pthread_self()) && hidden(0)) show_start(bytes, mask);
    return error;
}

int sched_setaffinity(pid_t tid, size_t bytes, const cpu_set_t *mask) {
    NP_REAL(int, "sched_setaffinity", pid_t, size_t, const cpu_set_t *);
    if (keeps_plan(tid, mask, bytes)) return 0;
    int result = real(tid, bytes, mask);
    if (result == 0) note_own_mask(tid);
    return result;
}

int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *mask) {
    NP_REAL(int, "pthread_setaffinity_np", pthread_t, size_t, const cpu_set_t *);
    pid_t tid = np_tid_of(thread);
    if (!tid) return ESRCH; /* glibc would bind the caller instead */
    if (keeps_plan(tid, mask, bytes)) return 0;
    int error = real(thread, bytes, mask);
    if (!error) note_own_mask(tid);
    return error;
}

/* Runtimes that ask the kernel directly (libomp) get the same answers. */
bool nf_affinity_call(long number, const long a[6], long *result) {
    *result = 0;
    return number == SYS_sched_setaffinity && keeps_plan((pid_t)a[0], (void *)a[2], (size_t)a[1]);
}

void nf_affinity_called(long number, const long a[6], long result) {
    if (number == SYS_sched_setaffinity && result == 0) note_own_mask((pid_t)a[0]);
    /* the kernel fills no more than it has cpus for */
    if (number == SYS_sched_getaffinity && result > 0 && hidden((pid_t)a[0])) show_start((size_t)result, (void *)a[2]);
}
