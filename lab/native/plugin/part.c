#include "part.h"

#include "exact.h"
#include "marks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRANT 256 /* accesses that a vcpu counts by itself */
#define NOW 1     /* what the shared word says in the part */

bool lab_part_asked;

static const uint32_t always = NOW;
static const uint32_t *wanted = &always; /* the shared word */
static uint64_t skip, take, passed;
static struct seat {
    _Alignas(64) unsigned accesses;
    bool granted, within;
} seats[VCPUS_MAX];

static bool by_time, by_marks; /* the part is asked for */
static int32_t marks[MARK_TOLD_BYTES / 4 + 1]; /* begun and not ended, by process */

static bool map_word(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    void *word = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *wanted, PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (word == MAP_FAILED) return false;
    wanted = word;
    return true;
}

bool lab_part_option(const char *name, const char *value) {
    if (!strcmp(name, "wanted")) return lab_part_asked = by_time = map_word(value);
    if (!strcmp(name, "marked")) return lab_part_asked = by_marks = !strcmp(value, "on");
    uint64_t *number = !strcmp(name, "skip") ? &skip : !strcmp(name, "take") ? &take : NULL;
    if (!number) return false;
    return lab_part_asked = by_time = (*number = strtoull(value, NULL, 10)) > 0;
}

void lab_part_start(void) { memset(marks, 0, sizeof marks); }

unsigned lab_part_told(unsigned byte) {
    unsigned process = byte / 4 + 1;
    int32_t seen = __atomic_load_n(&marks[process], __ATOMIC_RELAXED);
    switch ((enum lab_told)(byte % 4)) {
    case TOLD_STARTS: __atomic_store_n(&marks[process], 0, __ATOMIC_RELAXED); return process;
    case TOLD_BORN: return process;
    case TOLD_BEGINS: __atomic_fetch_add(&marks[process], 1, __ATOMIC_RELAXED); break;
    case TOLD_ENDS:
        while (seen > 0 && !__atomic_compare_exchange_n(&marks[process], &seen, seen - 1, false, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED)) {
            /* another thread was sooner */
        }
    }
    return 0;
}

/* Accesses are counted by many at once, and its time may have come only since. */
static bool granted(struct seat *seat, unsigned accesses) {
    seat->accesses += accesses;
    if (seat->accesses < GRANT) return seat->granted;
    seat->granted = __atomic_load_n(wanted, __ATOMIC_RELAXED) == NOW;
    if (seat->granted && (skip || take)) {
        uint64_t before = __atomic_fetch_add(&passed, seat->accesses, __ATOMIC_RELAXED);
        seat->granted = before >= skip && (!take || before < skip + take);
    }
    seat->accesses = 0;
    return seat->granted;
}

bool lab_part_access(unsigned vcpu, unsigned process, unsigned accesses) {
    struct seat *seat = &seats[vcpu];
    bool within =
        (!by_time || granted(seat, accesses)) && (!by_marks || __atomic_load_n(&marks[process], __ATOMIC_RELAXED) > 0);
    if (within && !seat->within) lab_exact_forget_own(vcpu);
    return seat->within = within;
}
