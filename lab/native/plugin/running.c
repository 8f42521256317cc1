/*
 * Looks are by chance up to twice as far apart as in the mean, and twice as far after every LOOKS_APART_ALIKE, so that
 * what is written stays little. One is a header with its time and then two tasks each, as those of the emulation
 * (profiler/native/emulate/running.c).
 */
#include "running.h"

#include "exact.h"
#include "recording.h"
#include "sampling.h"
#include "sharing.h"

#include <errno.h>
#include <pthread.h>

#define FIRST_APART_NS 250000
#define LOOKS_APART_ALIKE 1024
#define WAITING_MOST 1024 /* tasks */
#define HEADER (UINT64_C(1) << 63)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;
static int problem; /* errno of the first write that failed */
static uint64_t due, apart, chance;
static unsigned looks;

bool lab_running_start(const char *directory) {
    char path[4096 + 32];
    snprintf(path, sizeof path, "%s/exact-running", directory);
    file = fopen(path, "we");
    problem = file ? 0 : errno;
    due = looks = 0;
    apart = FIRST_APART_NS;
    chance = UINT64_C(0x2345678);
    return file;
}

static void put(uint64_t first, uint64_t second) {
    const uint64_t pair[] = {first, second};
    if (fwrite(pair, sizeof pair, 1, file) != 1 && !problem) problem = errno;
}

static void look(uint64_t now) {
    static uint32_t who[VCPUS_MAX + WAITING_MOST + 1];
    static uint64_t waiting[WAITING_MOST];
    unsigned count = lab_exact_running(who);
    count += lab_exact_known(waiting, lab_sharing_waiting(waiting, WAITING_MOST), who + count);
    if (count == 0) return;
    who[count] = 0; /* nobody: an odd one has no other */
    put(HEADER, now);
    for (unsigned i = 0; i < count; i += 2) put(who[i], who[i + 1]);
    if (++looks % LOOKS_APART_ALIKE == 0) apart *= 2;
}

void lab_running_check(void) {
    uint64_t now = lab_now_ns();
    if (now < __atomic_load_n(&due, __ATOMIC_RELAXED) || pthread_mutex_trylock(&lock)) return; /* another one looks */
    if (file && now >= due) {
        look(now);
        __atomic_store_n(&due, now + lab_random(&chance) % (2 * apart), __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
}

int lab_running_finish(void) {
    pthread_mutex_lock(&lock);
    if (file && fclose(file) && !problem) problem = errno;
    file = NULL;
    pthread_mutex_unlock(&lock);
    return problem;
}
