/* trace.elf keep PLACE…: makes the folder of a launch in the first place that has room for it, says its name, and
 * takes it away again, as the launcher may be killed at any moment.
 *
 * A byte on stdin says that the launch is over. Without it, at the end of stdin, the launcher is dead, and the folder
 * stays while a process has its files mapped: programs that this one starts find their plan there.
 */
#include "trace.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_LOOK_S = 1, LAST_LOOK_S = 32 };

static bool maps(const char *pid, const char *folder) {
    char path[300], *line = NULL;
    size_t room = 0, length = strlen(folder);
    snprintf(path, sizeof path, "/proc/%s/maps", pid);
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file && !found && getline(&line, &room, file) > 0) {
        const char *name = strchr(line, '/');
        found = name && !strncmp(name, folder, length) && name[length] == '/';
    }
    free(line);
    if (file) fclose(file);
    return found;
}

static bool in_use(const char *folder) {
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    bool found = false;
    while (processes && !found && (entry = readdir(processes)))
        found = isdigit((unsigned char)*entry->d_name) && maps(entry->d_name, folder);
    if (processes) closedir(processes);
    return found;
}

/* No folders are in it. */
static void remove_folder(const char *folder) {
    DIR *files = opendir(folder);
    const struct dirent *entry;
    while (files && (entry = readdir(files))) unlinkat(dirfd(files), entry->d_name, 0);
    if (files) closedir(files);
    rmdir(folder);
}

static bool make(const char *place, char folder[TR_PATH]) {
    char real[TR_PATH];
    if (!realpath(place, real)) return false;
    errno = ENAMETOOLONG;
    if (snprintf(folder, TR_PATH, "%s/nlaunch-XXXXXX", real) >= TR_PATH) return false;
    return mkdtemp(folder) != NULL;
}

int tr_hold_folder(int places, char **place) {
    char folder[TR_PATH], end;
    int error = ENOENT;
    for (; places > 0 && !make(*place, folder); places--, place++) error = errno;
    if (places <= 0) return error;
    if (write(STDOUT_FILENO, folder, strlen(folder) + 1) < 0 || chdir("/")) {
        remove_folder(folder);
        return errno;
    }
    ssize_t got;
    while ((got = read(STDIN_FILENO, &end, 1)) < 0 && errno == EINTR) {}
    for (unsigned seconds = FIRST_LOOK_S; got != 1; seconds += seconds < LAST_LOOK_S ? seconds : 0) {
        sleep(seconds);
        if (!in_use(folder)) break;
    }
    remove_folder(folder);
    return 0;
}
