/* launch_sandbox HOW [THREADS [exec PROGRAM ARG…]]: restricts its own system calls, as programs that open hostile files do,
 * and then works on: threads, blocks, a look at its own cpus. Exit code 7, `done CPUS` where all went well.
 *
 * HOW: kill, errno or trap what only a placement needs; list: kill whatever is not needed to go on; strict: read, write, exit;
 * ask: nothing; itself: kill, and the filter comes past libc; alarms: kill, while signals break off what waits. A first
 * thread is there before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { BLOCK = 4 << 20, MOST = 128, EXIT = 7 };

static const int PLACING[] = {SYS_mbind, SYS_set_mempolicy, SYS_sched_setaffinity, SYS_move_pages};

static const int NEEDED[] = {
    SYS_write,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_brk,
    SYS_madvise,
    SYS_clone,
    SYS_clone3,
    SYS_futex,
    SYS_rseq,
    SYS_mremap,
    SYS_exit,
    SYS_exit_group,
    SYS_set_robust_list,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sched_getaffinity,
    SYS_execve,
};

static void on_alarm(int number) { (void)number; }

static void alarms(bool on) {
    struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
    struct itimerval often = {{0, on ? 100 : 0}, {0, on ? 100 : 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static void on_trap(int number) {
    (void)number;
    static const char text[] = "trapped\n";
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0) _exit(1);
    _exit(EXIT + 1);
}

static size_t rule(struct sock_filter *to, const int *calls, size_t count, unsigned matching, unsigned others) {
    size_t n = 0;
    to[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < count; i++) {
        to[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        to[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, matching);
    }
    to[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
    return n;
}

static long past_libc(long number, long a, long b, long c) {
#if defined __x86_64__
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
#else
    return syscall(number, a, b, c);
#endif
}

static int restrict_calls(const char *how) {
    struct sock_filter code[MOST];
    struct sock_fprog filter = {.filter = code};
    size_t placing = sizeof PLACING / sizeof *PLACING, needed = sizeof NEEDED / sizeof *NEEDED;
    unsigned action = SECCOMP_RET_KILL_PROCESS;
    if (!strcmp(how, "errno")) action = SECCOMP_RET_ERRNO | EPERM;
    if (!strcmp(how, "trap")) action = SECCOMP_RET_TRAP;
    signal(SIGSYS, on_trap);
    if (!strcmp(how, "ask"))
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) != -1 ||
               syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL) != -1 ||
               prctl(PR_GET_SECCOMP) != 0;
    if (!strcmp(how, "strict")) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    bool list = !strcmp(how, "list");
    filter.len = (unsigned short)(list ? rule(code, NEEDED, needed, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS)
                                       : rule(code, PLACING, placing, action, SECCOMP_RET_ALLOW));
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    if (!strcmp(how, "itself"))
        return (int)past_libc(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, (long)&filter);
    if (!strcmp(how, "errno")) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
}

static void *work(void *unused) {
    char *block = malloc(BLOCK);
    if (!block) _exit(1);
    memset(block, 1, BLOCK);
    free(block);
    return unused;
}

static atomic_bool begun;

static void *wait_for(void *barrier) {
    begun = true;
    pthread_barrier_wait(barrier);
    work(NULL);
    pthread_t own; /* threads that a thread makes, which was there before */
    if (pthread_create(&own, NULL, work, NULL)) _exit(1);
    pthread_join(own, NULL);
    return NULL;
}

int main(int argc, char **argv) {
    bool strict = argc > 1 && !strcmp(argv[1], "strict"); /* only one thread may end */
    int threads = strict ? 0 : argc > 2 ? atoi(argv[2]) : 2;
    pthread_t first, later[MOST];
    pthread_barrier_t barrier;
    cpu_set_t cpus;
    char line[64];
    work(NULL);
    pthread_barrier_init(&barrier, NULL, 2);
    if (argc < 2 || threads > MOST) return 1;
    if (threads && pthread_create(&first, NULL, wait_for, &barrier)) return 1;
    /* A filter past libc that comes while a thread begins cannot be seen coming. */
    while (threads && !strcmp(argv[1], "itself") && !begun) sched_yield();
    bool alarmed = !strcmp(argv[1], "alarms");
    if (alarmed) alarms(true);
    if (restrict_calls(argv[1])) return 2;
    if (alarmed) alarms(false);
    if (strict) {
        if (write(STDOUT_FILENO, "done 0\n", 7) < 0) return 1;
        past_libc(SYS_exit, EXIT, 0, 0);
    }
    if (argc > 4 && !strcmp(argv[3], "exec")) execv(argv[4], argv + 4);
    if (threads) pthread_barrier_wait(&barrier);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&later[i], NULL, work, NULL)) return 1;
    for (int i = 0; i < threads; i++) pthread_join(later[i], NULL);
    if (threads) pthread_join(first, NULL);
    work(NULL);
    int known = sched_getaffinity(0, sizeof cpus, &cpus) ? -errno : CPU_COUNT(&cpus);
    int length = snprintf(line, sizeof line, "done %d\n", known);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) return 1;
    return EXIT;
}
