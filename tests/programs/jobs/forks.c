/* A parent forks two children, one of which forks again; each works on a block of its own with two threads. */
#include "work.h"

#include <sys/wait.h>
#include <unistd.h>

static void child(int deeper) {
    if (fork() != 0) return;
    if (deeper) child(0);
    free(both());
    while (wait(NULL) > 0) {}
    _exit(0);
}

int main(void) {
    child(1);
    child(0);
    free(both());
    while (wait(NULL) > 0) {}
    return 0;
}
