#include "../plugin/marks.h"
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool set_limits(const struct guest_frame *frame) {
    size_t position = 0;
    const char *key, *value;
    int resource;
    unsigned long long soft, hard;
    while ((key = guest_frame_next(frame, &position)) && (value = guest_frame_next(frame, &position)))
        if (!strcmp(key, "rlimit") && sscanf(value, "%d:%llu:%llu", &resource, &soft, &hard) == 3 &&
            setrlimit(resource, &(struct rlimit){.rlim_cur = soft, .rlim_max = hard}))
            return false;
    return true;
}

static bool set_placement(const struct guest_job *job) {
    unsigned long memory_nodes[16] = {0};
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (size_t i = 0; i < job->first_count; i++) CPU_SET(job->first[i], &cpus);
    if (job->cpu_count > 0) CPU_SET(job->cpus[0], &cpus);
    if (job->cpu_count > 0 || job->first_count > 0) {
        if (sched_setaffinity(0, sizeof cpus, &cpus)) return false;
    }
    if (!job->interleave) return !syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL); /* not ours */
    if (syscall(SYS_get_mempolicy, NULL, memory_nodes, 8 * sizeof memory_nodes, NULL, MPOL_F_MEMS_ALLOWED))
        return false;
    return !syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, memory_nodes, 8 * sizeof memory_nodes);
}

static bool become_user(const struct guest_job *job) {
    return !setgroups(job->group_count, job->groups) && !setresgid(job->gid, job->gid, job->gid) &&
           !setresuid(job->uid, job->uid, job->uid);
}

static void reset_signals(void) {
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn static void become_program(const struct guest_job *job, const struct guest_frame *frame, const int ends[3],
                                     int failure, int go) {
    char nothing;
    (void)!read(go, &nothing, 1); /* until the other end is closed */
    setsid();
    reset_signals();
    umask(job->umask);
    if (job->exclude) guest_mark(MARK_EXCLUDE);
    bool ok = guest_temporary_enter();
    ok = ok && dup2(ends[0], 0) == 0 && dup2(ends[1], 1) == 1 && dup2(ends[2], 2) == 2;
    ok = ok && set_limits(frame) && set_placement(job);
    if (ok && job->cpu_count > 0) guest_affinity_watch();
    ok = ok && become_user(job);
    const bool lacks_folder = ok && chdir(job->directory);
    if (ok && !lacks_folder) execve(job->program, job->argv, job->environment);
    int error = lacks_folder ? -errno : errno; /* below 0: it is not the program that is at fault */
    (void)!write(failure, &error, sizeof error);
    _exit(127);
}

static bool make_pipe(int ends[2]) { return !pipe2(ends, O_CLOEXEC); }

static int open_null(void) { return open("/dev/null", O_RDWR | O_CLOEXEC); }

pid_t guest_start_program(const struct guest_job *job, const struct guest_frame *frame, struct guest_pipes *ours,
                          int *error) {
    int in[2] = {-1, -1}, out[2], err[2], failure[2], go[2];
    if (!make_pipe(out) || !make_pipe(err) || !make_pipe(failure) || !make_pipe(go) ||
        (job->use_stdin && !make_pipe(in)))
        guest_die("pipe: %s", strerror(errno));
    if (!job->use_stdin) in[0] = open_null();
    *ours = (struct guest_pipes){in[1], out[0], err[0]};
    pid_t pid = fork();
    if (pid == 0) {
        close(go[1]);
        become_program(job, frame, (int[]){in[0], out[1], err[1]}, failure[1], go[0]);
    }
    *error = pid < 0 ? errno : 0;
    if (pid > 0 && job->cpu_count > 0 && !guest_pin_follow(pid))
        guest_die("cannot follow the program's births: %s", strerror(errno));
    close(go[0]);
    close(go[1]);
    close(in[0]);
    close(out[1]);
    close(err[1]);
    close(failure[1]);
    if (read(failure[0], error, sizeof *error) < 0) *error = errno;
    close(failure[0]);
    return *error ? -1 : pid;
}
