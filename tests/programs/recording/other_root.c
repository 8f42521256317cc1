/* Makes a folder its root and runs a program there, after others that are not there, or as a child of its own; or works
 * on there itself, and in a child.
 *
 *     other_root FOLDER PROGRAM self|child
 *     other_root FOLDER ADDITIONS stays|closes    closes all descriptors first
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void add(long times) {
    volatile long sum = 0;
    for (long i = 0; i < times; i++) sum += i;
}

int main(int argc, char **argv) {
    int status = 0;
    if (argc != 4) return 2;
    add(100000);
    pid_t child = strcmp(argv[3], "child") ? 0 : fork();
    if (child == 0) {
        if (chroot(argv[1]) || chdir("/")) return 3;
        if (!strcmp(argv[3], "closes")) close_range(3, ~0U, 0);
        if (!strcmp(argv[3], "stays") || !strcmp(argv[3], "closes")) {
            child = fork();
            add(atol(argv[2]));
            if (child == 0) _exit(0);
        } else {
            execl("/nowhere", "nowhere", (char *)NULL);
            execl(argv[2], argv[2], (char *)NULL);
            _exit(4);
        }
    }
    if (waitpid(child, &status, 0) != child) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
