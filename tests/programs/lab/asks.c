/* Prints what the kernel says to those who ask for their cpus: `WHO NUMBER-OF-CPUS BYTES`, or `WHO error N`. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *who, pid_t of, size_t room, void *mask) {
    long bytes = syscall(SYS_sched_getaffinity, of, room, mask);
    if (bytes < 0) printf("%s error %d\n", who, errno);
    else printf("%s %d %ld\n", who, CPU_COUNT_S((size_t)bytes, (cpu_set_t *)mask), bytes);
    fflush(stdout);
}

static void ask(const char *who, pid_t of) {
    cpu_set_t mask;
    say(who, of, sizeof mask, &mask);
}

static void *thread(void *main_thread) {
    ask("a thread", 0);
    ask("a thread, by its number,", gettid());
    ask("a thread, of the main thread,", *(pid_t *)main_thread);
    return NULL;
}

static void refuse(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* In a child: what it is told, after it did something. */
static void apart(const char *who, void (*first)(void)) {
    pid_t child = fork();
    if (child == 0) {
        if (first) first();
        ask(who, 0);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void bind_to(int first, int last) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int cpu = first; cpu <= last; cpu++) CPU_SET(cpu, &mask);
    sched_setaffinity(0, sizeof mask, &mask);
}

static void bind_to_one(void) { bind_to(3, 3); }

static void bind_in_vain(void) { syscall(SYS_sched_setaffinity, 0, 8, NULL); }

int main(int argc, char **argv) {
    pid_t self = getpid();
    pthread_t other;
    char small[4];
    if (argc > 1) {
        ask(argv[1], 0);
        return 0;
    }
    ask("the program", 0);
    ask("the program, by its number,", self);
    say("a mask that is too small", 0, sizeof small, small);
    say("a mask that is nowhere", 0, sizeof(cpu_set_t), NULL);
    ask("nobody", 1 << 30);
    pthread_create(&other, NULL, thread, &self);
    pthread_join(other, NULL);
    apart("a child", NULL);
    apart("a child that may not ask", refuse);
    apart("a child that bound itself", bind_to_one);
    apart("a child that could not", bind_in_vain);
    bind_to(0, 1);
    ask("the program, bound,", 0);
    if (fork() == 0) {
        bind_to(0, 0);
        execl(argv[0], argv[0], "another program, bound before,", (char *)NULL);
        _exit(1);
    }
    wait(NULL);
    bind_to(0, 1023);
    ask("the program, bound no more,", 0);
    execl(argv[0], argv[0], "another program", (char *)NULL);
    return 1;
}
