/* trace.elf trace FORM FOLDER NAME hold|yield: reads the pid of a waiting process from stdin, attaches, answers with
 * a byte. In a session of its own: neither Ctrl-C nor Ctrl-Z at the program's terminal may stop who lets its tasks go
 * on. trace.elf exec …: see exec.c; trace.elf keep …: see keep.c.
 */
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

static void ignore_signals(void) {
    static const int meant_for_the_program[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof meant_for_the_program / sizeof *meant_for_the_program; i++)
        signal(meant_for_the_program[i], SIG_IGN);
}

int tr_trace(pid_t pid, const char *name, const char *form, const char *folder, const char *mode) {
    bool holds = !strcmp(mode, "hold");
    ignore_signals();
    tr_question_open();
    if (!tr_bind_open(form, folder, holds)) return 2;
    if (!tr_seize(pid, name)) return 3;
    if (write(STDOUT_FILENO, "y", 1) != 1) return 3;
    close(STDOUT_FILENO);
    look_around(holds);
    tr_follow();
    return 0;
}

int main(int argc, char **argv, char **envp) {
    pid_t pid = 0;
    if (argc > 1 && !strcmp(argv[1], "exec")) return tr_exec(argc, argv, envp);
    if (argc > 1 && !strcmp(argv[1], "keep")) {
        setsid();
        ignore_signals();
        return tr_keep(argc - 2, argv + 2);
    }
    if (argc != 6) return 2;
    setsid();
    if (read(STDIN_FILENO, &pid, sizeof pid) != sizeof pid || pid <= 0) return 2;
    close(STDIN_FILENO);
    return tr_trace(pid, argv[4], argv[2], argv[3], argv[5]);
}
