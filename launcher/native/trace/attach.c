/* The life of a tracer: it attaches to a process, and follows it until no process is left. */
#include "trace.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { LOOK_US = 50000 };

static void wake(int signal) { (void)signal; }

/* To look at what no event tells: each second, more often where the plan holds against the program's wish. */
static void look_around(bool holds) {
    struct sigaction action = {.sa_handler = wake}; /* no SA_RESTART: it ends the wait */
    struct timeval every = {holds ? 0 : 1, holds ? LOOK_US : 0};
    struct itimerval clock = {every, every};
    sigset_t alarm; /* a program that starts us may have blocked it */
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &clock, NULL);
}

void tr_ignore_signals(void) {
    static const int meant_for_the_program[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof meant_for_the_program / sizeof *meant_for_the_program; i++)
        signal(meant_for_the_program[i], SIG_IGN);
}

static bool attach(const struct tr_target *to) {
    return to->log ? tr_resume(to->pid, to->name, to->children, to->log) : tr_seize(to->pid, to->name);
}

int tr_trace(const struct tr_target *target, const char *table, const char *folder, const char *mode) {
    bool holds = !strcmp(mode, "hold");
    tr_ignore_signals();
    told_start();
    if (!tr_bind_open(table, folder, holds)) return 2;
    if (!attach(target)) return 3;
    if (write(STDOUT_FILENO, "y", 1) != 1) return 3;
    close(STDOUT_FILENO);
    look_around(holds);
    tr_follow();
    return 0;
}
