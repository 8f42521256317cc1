/* What processes of a job tell each other of the parts that they have (processes.c is compiled in). Prints a line for
 * each question of `choose` and `is_played`.
 *
 *     launch_choices               the first process asks, others choose, end, and are killed
 *     launch_choices PROCESSES     all at once take the lowest part that nobody has: how often each was taken
 */
#include "processes.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PART = 7, PROGRAM = 2, STALE = 1000, MOST = 64 };

/* Until it is killed, or its parent was. */
static _Noreturn void stay(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
}

/* Does it in a child, which lives on when this returns. */
static pid_t beside(void (*what)(void)) {
    int done[2];
    char byte = 0;
    if (pipe(done)) exit(1);
    np_fork_prepare();
    pid_t pid = fork();
    if (pid == 0) {
        np_fork_child(0);
        what();
        if (write(done[1], &byte, 1) != 1) _exit(1);
        stay();
    }
    if (pid < 0 || read(done[0], &byte, 1) != 1) exit(1);
    close(done[0]);
    close(done[1]);
    return pid;
}

static void bury(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void choose(void) { np_choose(PART, np_played(PROGRAM, false), np_choices()); }

/* As one that is killed before it has counted up. */
static void begin(void) { np_choose(PART, np_played(PROGRAM, false), np_choices() + STALE); }

static void choose_for_now(void) { np_choose_unseen(PART, np_played(PROGRAM, true)); }

static void choose_and_end(void) {
    choose();
    np_process_end();
}

static void say(const char *what, bool answer) { printf("%s: %s\n", what, answer ? "yes" : "no"); }

static void one_by_one(void) {
    uint32_t before = np_choices();
    pid_t other = beside(choose);
    say("may choose after another did", np_choose(0, np_played(PROGRAM, false), before));
    say("may choose again", np_choose(PART, np_played(PROGRAM, false), np_choices()));
    say("played", np_is_played(PART, PROGRAM, false, np_process()));
    say("by another program", np_is_played(PART, PROGRAM + 2, false, np_process()));
    bury(other);
    say("played by a dead one or by itself", np_is_played(PART, PROGRAM, false, np_process()));
    other = beside(choose_and_end);
    say("by one that has ended", np_is_played(PART, PROGRAM, false, np_process()));
    bury(other);
    other = beside(choose_for_now);
    say("by one for now", np_is_played(PART, PROGRAM, false, np_process()));
    say("and surely", np_is_played(PART, PROGRAM, true, np_process()));
    bury(other);
    before = np_choices();
    bury(beside(begin));
    say("by one that was killed in between", np_is_played(PART, PROGRAM, false, np_process()));
    say("which holds nobody up", np_choose(PART, np_played(PROGRAM, false), before));
}

static void take_lowest(const int go[2], int taken) {
    uint32_t choices, part;
    char byte;
    np_fork_child(0);
    close(go[1]);
    if (read(go[0], &byte, 1)) _exit(1); /* its end: all others are there, too */
    do {
        choices = np_choices();
        for (part = 1; np_is_played(part, PROGRAM, false, np_process());) part++;
    } while (!np_choose(part, np_played(PROGRAM, false), choices));
    byte = (char)part;
    if (write(taken, &byte, 1) != 1) _exit(1);
    stay();
}

static void at_once(int processes) {
    int go[2], taken[2];
    pid_t pids[MOST];
    char part, takers[MOST + 1] = "";
    if (pipe(go) || pipe(taken)) exit(1);
    for (int i = 0; i < processes; i++) {
        np_fork_prepare();
        pids[i] = fork();
        if (pids[i] == 0) take_lowest(go, taken[1]);
    }
    close(go[1]);
    for (int i = 0; i < processes && read(taken[0], &part, 1) == 1; i++) takers[part % MOST]++;
    for (int i = 1; i <= processes; i++) printf("%d", takers[i]);
    puts("");
    for (int i = 0; i < processes; i++) bury(pids[i]);
}

int main(int argc, char **argv) {
    int processes = argc > 1 ? atoi(argv[1]) : 0;
    if (processes >= MOST || !np_processes_open()) return 1;
    setvbuf(stdout, NULL, _IONBF, 0);
    if (processes) at_once(processes);
    else one_by_one();
    return 0;
}
