/* How long a thread lives that does nothing else: until a file of its number appears in the folder LIVE_UNTIL, which
 * says that it was seen, or, where nobody looks on, for some milliseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void live(unsigned milliseconds) {
    const char *folder = getenv("LIVE_UNTIL");
    char path[4096];
    snprintf(path, sizeof path, "%s/%ld", folder ? folder : "", (long)syscall(SYS_gettid));
    if (!folder) usleep(milliseconds * 1000);
    else
        while (access(path, F_OK)) usleep(10000);
}
