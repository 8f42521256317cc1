/* Makes a folder its root and runs a program there, after others that are not there, or as a child of its own.
 *
 *     other_root FOLDER PROGRAM self|child
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    volatile long sum = 0;
    int status = 0;
    for (long i = 0; i < 100000; i++) sum += i;
    pid_t child = argc == 4 && !strcmp(argv[3], "child") ? fork() : 0;
    if (child == 0) {
        if (argc != 4 || chroot(argv[1]) || chdir("/")) return 3;
        execl("/nowhere", "nowhere", (char *)NULL);
        execl(argv[2], argv[2], (char *)NULL);
        _exit(4);
    }
    if (waitpid(child, &status, 0) != child) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
