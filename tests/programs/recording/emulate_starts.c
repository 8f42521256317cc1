/* A program that starts itself in many ways. usage: emulate_starts WAY | emulate_starts WAY child
 *
 * The child writes 30,000 numbers into a block of its own. `library FILE`: threads run work() of a library.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#ifdef LIBRARY
void *work(void *many) {
    volatile long *block = malloc((long)many * 8);
    for (long i = 0; i < (long)many; i++) block[i] = i;
    return (void *)block;
}
#else
static void child(void) {
    volatile long *block = malloc(30000 * 8);
    for (long i = 0; i < 30000; i++) block[i] = i;
}

static int library(const char *file) {
    pthread_t threads[2];
    void *handle = dlopen(file, RTLD_NOW);
    void *(*work)(void *) = handle ? (void *(*)(void *))dlsym(handle, "work") : NULL;
    if (!work) return 1;
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)20000l);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}

/* 16 GiB and one that are mapped and hardly touched, with huge pages asked for. */
static int big(void) {
    const size_t sizes[] = {1ul << 34, 1ul << 30};
    for (int i = 0; i < 2; i++) {
        char *place = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (place == MAP_FAILED) return 1;
        madvise(place, sizes[i], MADV_HUGEPAGE);
        for (size_t at = 0; at < 1000; at++) *(volatile long *)(place + sizes[i] / 1000 / 8 * 8 * at) = 1;
    }
    return 0;
}

/* One child dies of a signal, one ends as programs without a C library do. */
static int killed(void) {
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            child();
            if (i == 0) raise(SIGKILL);
            syscall(SYS_exit_group, 0);
        }
        waitpid(pid, NULL, 0);
    }
    return 0;
}

/* A child that has begun its work goes on when we have ended, until somebody writes to the pipe of this name. */
static int leave(const char *pipe_name) {
    int begun[2];
    char told;
    if (pipe(begun)) return 5;
    if (fork()) return read(begun[0], &told, 1) != 1;
    setsid();
    int none = open("/dev/null", O_RDWR);
    for (int file = 0; file < 3; file++) dup2(none, file);
    child();
    if (write(begun[1], "", 1) != 1) _exit(6);
    close(open(pipe_name, O_RDONLY));
    _exit(0);
}

int main(int argc, char **argv) {
    pid_t pid = 0;
    int status = 0;
    char *again[] = {argv[0], argv[1], "child", NULL}, *bare[] = {"ONLY=this", NULL};
    const char *way = argc > 1 ? argv[1] : "";
    if (!strcmp(way, "library")) return library(argv[2]);
    if (!strcmp(way, "big")) return big();
    if (!strcmp(way, "killed")) return killed();
    if (!strcmp(way, "leave")) return leave(argv[2]);
    if (argc > 2) {
        child();
        return getenv("WANTED") && !dlsym(RTLD_DEFAULT, "work"); /* its LD_PRELOAD did not hold */
    }
    if (!strcmp(way, "spawn"))
        return posix_spawn(&pid, argv[0], NULL, NULL, again, environ) || waitpid(pid, &status, 0) != pid || status;
    if (!strcmp(way, "vfork") && (pid = vfork()) == 0) {
        execv(argv[0], again);
        _exit(3);
    }
    if (pid) return waitpid(pid, &status, 0) != pid || status;
    if (!strcmp(way, "preload")) {
        setenv("LD_PRELOAD", getenv("WANTED"), 1);
        execv(argv[0], again);
    }
    if (!strcmp(way, "bare")) execve(argv[0], again, bare);
    return 4;
}
#endif
