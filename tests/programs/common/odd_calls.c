/* Ways to make, watch and end processes, and to use memory, that few programs go; each must work as if nobody looked.
 *
 *     odd_calls WAY      ends with 0 and says its name, or with what went wrong
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK = 1 << 16, PAGE = 4096, MOST_GAPS = 4096 };

static _Alignas(64) char stack[STACK];
static volatile int told;
static sigjmp_buf back;

static int ended(pid_t child) {
    int status = 0;
    if (child <= 0 || waitpid(child, &status, __WALL) != child) return 90;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int tell(void *descriptor) {
    told = 1;
    close((int)(intptr_t)descriptor);
    syscall(SYS_exit_group, 0);
    return 0;
}

/* A process that shares our memory, but is no thread. */
static int shares_memory(void) {
    int failed = ended(clone(tell, stack + STACK, CLONE_VM | SIGCHLD, (void *)(intptr_t)-1));
    return failed ? failed : !told;
}

/* One that shares our descriptors: what it closes is closed here. */
static int shares_files(void) {
    int file = open("/dev/null", O_RDONLY);
    int failed = ended(clone(tell, stack + STACK, CLONE_FILES | SIGCHLD, (void *)(intptr_t)file));
    return failed ? failed : told || fcntl(file, F_GETFD) != -1;
}

static int watched(void) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) _exit(2);
        raise(SIGSTOP);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child) return 1;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    return !WIFSTOPPED(status) || ptrace(PTRACE_CONT, child, NULL, NULL) || ended(child);
}

static void overflown(int number) { siglongjmp(back, number); }

static int deeper(volatile char *above) {
    volatile char here[PAGE];
    here[0] = above[0];
    return deeper(here) + here[0];
}

static int another_stack(void) {
    stack_t other = {.ss_sp = stack, .ss_size = STACK};
    struct sigaction action = {.sa_handler = overflown, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&other, NULL) || sigaction(SIGSEGV, &action, NULL)) return 1;
    if (sigsetjmp(back, 1)) return 0;
    return deeper(stack) + 2;
}

static int closes_all(void) {
    if (syscall(SYS_close_range, 3u, ~0u, 0u))
        for (int file = 3; file < 1024; file++) close(file);
    if (open("/dev/null", O_RDONLY) != 3) return 1;
    void *memory = malloc(1 << 20);
    pid_t child = fork();
    if (child == 0) execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL);
    free(memory);
    return ended(child);
}

/* Pages right beside all there is, one after the other, in between what was read of the list. */
static int maps_beside(void) {
    static uintptr_t ends[MOST_GAPS];
    char line[512];
    unsigned long start, end;
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && count < MOST_GAPS && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx", &start, &end) == 2 && end >> 47 == 0) ends[count++] = end;
    fclose(maps);
    for (int i = 0; i < count; i++) {
        char *page = mmap((void *)ends[i], PAGE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (page == MAP_FAILED) continue;
        *page = 1;
        char *again = mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (again != page || *page || munmap(page, PAGE)) return 1;
    }
    return 0;
}

static int vforks(void) {
    pid_t child = vfork();
    if (child == 0) {
        pid_t next = vfork();
        if (next == 0) {
            execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
            _exit(6);
        }
        int status = 0;
        waitpid(next, &status, 0);
        _exit(WIFEXITED(status) && WEXITSTATUS(status) == 5 ? 0 : 7);
    }
    return ended(child);
}

static int execs_nothing(void) {
    char *words[] = {"nothing", NULL};
    for (uintptr_t path = 0; path < 2; path++)
        if (execve((const char *)path, words, words + 1) != -1 || errno != EFAULT) return 1;
    return 0;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*way)(void);
    } ways[] = {{"shares_memory", shares_memory},
                {"shares_files", shares_files},
                {"watched", watched},
                {"another_stack", another_stack},
                {"closes_all", closes_all},
                {"maps_beside", maps_beside},
                {"vforks", vforks},
                {"execs_nothing", execs_nothing}};
    volatile long sum = 0;
    for (long i = 0; i < 50000; i++) sum += i;
    for (size_t i = 0; argc == 2 && i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(argv[1], ways[i].name)) {
            int failed = ways[i].way();
            if (!failed) puts(argv[1]);
            return failed;
        }
    return 99;
}
