/* Has another program run as its child, and ends as that does: linked statically, no library of ours sees it. */
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int status = 0;
    pid_t child = argc > 1 ? fork() : -1;
    if (child == 0) {
        execv(argv[1], argv + 1);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
