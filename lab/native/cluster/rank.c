/*
 * Becomes a rank's program with the rank's part of the job's plan. RANKS_VARIABLE names a folder with a file for each
 * planned rank, `r3`: strings that each end in NUL, as pairs of key and value.
 */
#include "cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RANKS_VARIABLE "NUMAPLAN_LAB_RANKS"

static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

static const char *own_rank(void) {
    const char *rank = NULL;
    for (size_t i = 0; !rank && i < sizeof variables / sizeof *variables; i++) rank = getenv(variables[i]);
    return rank;
}

/* All of a file, ended by a zero; NULL: it is not there. */
static char *read_file(const char *path, size_t *bytes) {
    struct stat status;
    char *data = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &status) && (data = calloc(1, (size_t)status.st_size + 1))) {
        ssize_t got = read(fd, data, (size_t)status.st_size);
        *bytes = got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0) close(fd);
    return data;
}

static bool is_planned_here(const char *planned, const char *rank) {
    char own[HOST_NAME_MAX + 1] = "";
    gethostname(own, sizeof own - 1);
    if (strcmp(own, planned))
        fprintf(stderr, "nlab: rank %s is planned on host %s, and runs on %s: it is not placed\n", rank, planned, own);
    return !strcmp(own, planned);
}

/* The words in front of the program, if any are. */
static char **place(char *data, size_t bytes, const char *rank, char **words) {
    size_t count = 0, before = 0;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    while (words[count]) count++;
    char **all = calloc(bytes / 2 + count + 1, sizeof *all);
    for (char *key = data, *value; all && key < data + bytes; key = value + strlen(value) + 1) {
        value = key + strlen(key) + 1;
        if (!strcmp(key, "host") && !is_planned_here(value, rank)) return words;
        if (!strcmp(key, "unset")) unsetenv(value);
        if (!strcmp(key, "set")) putenv(value);
        if (!strcmp(key, "cpu")) CPU_SET(atoi(value), &cpus);
        if (!strcmp(key, "before")) all[before++] = value;
    }
    if (CPU_COUNT(&cpus) > 0) sched_setaffinity(0, sizeof cpus, &cpus);
    if (all) memcpy(all + before, words, count * sizeof *words);
    return all ? all : words;
}

int rank_start(char **words) {
    const char *rank = own_rank(), *folder = getenv(RANKS_VARIABLE);
    char path[PATH_MAX];
    size_t bytes = 0;
    if (!words[0]) return 2;
    if (rank && folder) {
        snprintf(path, sizeof path, "%s/r%s", folder, rank);
        char *data = read_file(path, &bytes);
        if (data) words = place(data, bytes, rank, words);
        else fprintf(stderr, "nlab: rank %s is not in the plan: it is not placed\n", rank);
    }
    execvp(words[0], words);
    fprintf(stderr, "nlab: %s: %s\n", words[0], strerror(errno));
    return 127;
}
