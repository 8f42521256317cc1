/* Pages that were touched before the part that is recorded, and by the main thread, as far as that can be told.
 *
 * Accesses are not seen then, but the kernel says which pages there are. While the main thread was alone they are its
 * own. Of those that came later they are if nearly all page faults since then were its own, too; else nobody knows, and
 * who uses a page first within the part counts as who touched it first.
 */
#include "emulate.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MOST_BYTES (UINT64_C(1) << 36) /* of a mapping: larger ones are reserved rather than used */
#define AT_ONCE 4096 /* pages */
#define PRESENT (UINT64_C(3) << 62) /* in memory, or in swap */
#define OF_FILE (UINT64_C(1) << 61) /* or of shared memory */

struct range {
    uint64_t first, end; /* pages */
};
static struct range *ranges;
static size_t count, room;
static struct faults {
    int64_t all, main;
} since; /* the main thread was alone, or something was recorded */

static struct faults faults_now(void) {
    char path[64], text[1024];
    struct rusage used;
    struct faults now = {0};
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[got > 0 ? got : 0] = 0;
    const char *name_end = strrchr(text, ')');
    long faults = 0;
    if (name_end && sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %ld", &faults) == 1) now.main = faults;
    if (getrusage(RUSAGE_SELF, &used) == 0) now.all = used.ru_minflt;
    return now;
}

static void add(uint64_t page) {
    if (count && ranges[count - 1].end == page) {
        ranges[count - 1].end++;
        return;
    }
    if (count == room) {
        struct range *grown = realloc(ranges, (room ? room * 2 : 64) * sizeof *ranges);
        if (grown == NULL) return;
        ranges = grown;
        room = room ? room * 2 : 64;
    }
    ranges[count++] = (struct range){page, page + 1};
}

static void find_in(int file, uint64_t start, uint64_t end, bool shared) {
    static uint64_t entries[AT_ONCE];
    for (uint64_t page = start; page < end;) {
        size_t wanted = (end - page < AT_ONCE ? end - page : AT_ONCE) * sizeof *entries;
        ssize_t got = pread(file, entries, wanted, (off_t)(page * sizeof *entries));
        if (got < (ssize_t)sizeof *entries) return;
        for (size_t i = 0; i < (size_t)got / sizeof *entries; i++, page++)
            if (entries[i] & PRESENT && (shared || !(entries[i] & OF_FILE)))
                add(em_memory_guest(page << PAGE_SHIFT) >> PAGE_SHIFT);
    }
}

/* All that the process has touched. */
static void find(void) {
    char line[512], mode[8];
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "re");
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    count = 0;
    while (maps && file >= 0 && em_memory_seen() && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, mode) == 3 && mode[1] == 'w' && end - start <= MOST_BYTES)
            find_in(file, start >> PAGE_SHIFT, end >> PAGE_SHIFT, mode[3] == 's');
    if (file >= 0) close(file);
    if (maps) fclose(maps);
}

static bool wanted(void) { return em_options.uses && !em_recording && !em_part_over(); }

void em_before_second_thread(void) {
    if (!wanted()) return;
    find();
    since = faults_now();
}

void em_before_pause(void) { since = faults_now(); }

/* No guest thread runs. */
void em_before_resume(void) {
    struct faults now = faults_now();
    bool by_main = 3 * (now.main - since.main) >= 2 * (now.all - since.all);
    if (em_options.uses && (em_threads_made() <= 1 || by_main)) find();
}

void em_before_tell(int64_t now) {
    for (size_t i = 0; i < count; i++)
        for (uint64_t page = ranges[i].first; page < ranges[i].end; page++) em_uses_before(page, now);
    count = 0;
}

void em_before_forked(void) {
    count = 0;
    since = (struct faults){0};
}
