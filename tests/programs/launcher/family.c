/* A family of processes: fork, fork with exec, a grandchild, posix_spawn, vfork, system; prints nothing itself.
 * With an argument it is a child that was exec'd, and only makes one thread.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void *nothing(void *argument) { return argument; }

static void one_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    pthread_join(thread, NULL);
}

static int wait_child(void) {
    int status = 0;
    wait(&status);
    return status;
}

int main(int argc, char **argv) {
    one_thread();
    if (argc > 1) return 0;
    char *child[] = {argv[0], "child", NULL};
    if (fork() == 0) { /* p0.1 and p0.1.1 */
        one_thread();
        if (fork() == 0) _exit(0);
        wait_child();
        exit(0);
    }
    int bad = wait_child();
    if (fork() == 0) { /* p0.2 */
        execv("/proc/self/exe", child);
        _exit(1);
    }
    bad |= wait_child();
    pid_t pid;
    if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, child, environ)) return 2; /* p0.3 */
    bad |= wait_child();
    if (vfork() == 0) { /* p0.4 */
        execv("/proc/self/exe", child);
        _exit(1);
    }
    bad |= wait_child();
    bad |= system("true"); /* p0.5 */
    char *volatile block = malloc(200000);
    memset(block, 1, 200000);
    if (fork() == 0) _exit(0); /* p0.6 */
    return bad | wait_child();
}
