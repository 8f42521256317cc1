/*
 * Which thread a task of the kernel is: its ids, read from the kernel's memory (/proc/kcore).
 *
 * Where they are in a task is not assumed: of some tasks both their address and their ids are known, and the ids (two
 * numbers in a row, equal in the first thread of a process) are at the one place where all of those have them.
 */
#include "guest.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TASK_BYTES 16384u /* more than a task has */
#define SEGMENTS 256
#define REMEMBERED 512u
#define LARGEST_ID (1u << 22)

static int kcore = -1;
static Elf64_Phdr segments[SEGMENTS];
static size_t segment_count, ids_at;

static unsigned now = 1; /* rises with each guest_tasks_forget */
static struct {
    uint64_t address;
    struct guest_task_ids ids;
    unsigned read_at;
} remembered[REMEMBERED];

static bool open_kcore(void) {
    Elf64_Ehdr head;
    kcore = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
    if (kcore < 0 || pread(kcore, &head, sizeof head, 0) != sizeof head || head.e_phentsize != sizeof *segments)
        return false;
    segment_count = head.e_phnum < SEGMENTS ? head.e_phnum : SEGMENTS;
    size_t bytes = segment_count * sizeof *segments;
    return pread(kcore, segments, bytes, (off_t)head.e_phoff) == (ssize_t)bytes;
}

static bool read_kernel(uint64_t address, void *target, size_t bytes) {
    for (size_t i = 0; i < segment_count; i++) {
        const Elf64_Phdr *segment = &segments[i];
        if (segment->p_type == PT_LOAD && address - segment->p_vaddr < segment->p_memsz)
            return pread(kcore, target, bytes, (off_t)(segment->p_offset + address - segment->p_vaddr)) ==
                   (ssize_t)bytes;
    }
    return false;
}

static bool read_task(const struct guest_known_task *known, uint32_t *words) {
    memset(words, 0, TASK_BYTES);
    return known->address && read_kernel(known->address, words, TASK_BYTES);
}

bool guest_tasks_learn(const struct guest_known_task *known, size_t count) {
    static uint32_t words[TASK_BYTES / sizeof(uint32_t)];
    static bool fits[TASK_BYTES / sizeof(uint32_t)];
    const size_t places = TASK_BYTES / sizeof *words - 1;
    size_t found = 0;
    memset(fits, true, sizeof fits);
    if (!open_kcore()) return false;
    for (size_t i = 0; i < count; i++) {
        if (!read_task(&known[i], words)) return false;
        for (size_t at = 0; at < places; at++)
            fits[at] = fits[at] && words[at] == (uint32_t)known[i].id && words[at + 1] == (uint32_t)known[i].id;
    }
    for (size_t at = 0; at < places; at++)
        if (fits[at]) {
            ids_at = at * sizeof *words;
            found++;
        }
    return found == 1;
}

void guest_tasks_forget(void) { now++; }

/* False when its memory has become something else's since. */
static bool read_ids(uint64_t address, struct guest_task_ids *ids) {
    uint32_t pair[2];
    if (!read_kernel(address + ids_at, pair, sizeof pair) || pair[0] - 1 >= LARGEST_ID || pair[1] - 1 >= LARGEST_ID)
        return false;
    *ids = (struct guest_task_ids){.tid = pair[0], .pid = pair[1]};
    return true;
}

/* Of a task that has ended since, what it was before. */
bool guest_tasks_find(uint64_t address, struct guest_task_ids *ids) {
    size_t slot = (address >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 55;
    if (address == 0) return false;
    if (remembered[slot].address != address || remembered[slot].read_at != now) {
        if (!read_ids(address, &remembered[slot].ids) && remembered[slot].address != address) return false;
        remembered[slot].address = address;
        remembered[slot].read_at = now;
    }
    *ids = remembered[slot].ids;
    return true;
}
