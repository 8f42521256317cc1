#include "part.h"

#include "exact.h"

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
    bool within;
} seats[VCPUS_MAX];

static bool map_word(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    void *word = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *wanted, PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (word == MAP_FAILED) return false;
    wanted = word;
    return true;
}

bool lab_part_option(const char *name, const char *value) {
    if (!strcmp(name, "wanted")) return lab_part_asked = map_word(value);
    uint64_t *number = !strcmp(name, "skip") ? &skip : !strcmp(name, "take") ? &take : NULL;
    if (!number) return false;
    return lab_part_asked = (*number = strtoull(value, NULL, 10)) > 0;
}

bool lab_part_access(unsigned vcpu, unsigned accesses) {
    struct seat *seat = &seats[vcpu];
    seat->accesses += accesses;
    if (seat->accesses < GRANT) return seat->within;
    bool within = __atomic_load_n(wanted, __ATOMIC_RELAXED) == NOW;
    if (within) {
        uint64_t before = __atomic_fetch_add(&passed, seat->accesses, __ATOMIC_RELAXED);
        within = before >= skip && (!take || before < skip + take);
    }
    if (within && !seat->within) lab_exact_forget_own(vcpu);
    seat->accesses = 0;
    return seat->within = within;
}
