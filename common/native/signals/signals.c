/* Signals and who sent them, for Python, whose own handlers are not told: each is written to a pipe as it comes.
 *
 * Whether the terminal sent one (to the whole foreground group) or a process did (perhaps to us alone) decides if
 * it is passed on to the program that we wait for.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum { SIGNALS = 65 };

struct received_signal { /* as common/processes/signals.py reads it */
    int32_t number, by_kernel, sender;
};

static struct sigaction before[SIGNALS];
static bool taken[SIGNALS];
static int pipe_end;
static pid_t owner;

static void receive(int number, siginfo_t *info, void *context) {
    (void)context;
    int saved = errno;
    bool sent = info->si_code <= 0 || number == SIGCHLD;
    struct received_signal received = {number, !sent, sent ? info->si_pid : 0};
    /* A child before its exec is not us. A full pipe wakes who reads it, too. */
    ssize_t written = getpid() == owner ? write(pipe_end, &received, sizeof received) : 0;
    (void)written;
    errno = saved;
}

static void take(int number) {
    struct sigaction ours = {.sa_sigaction = receive, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&ours.sa_mask);
    sigaction(number, &ours, NULL);
}

/* What was ignored stays so, and is the program's to ignore, but for the news of children. */
void signals_receive(const int32_t *numbers, int32_t count, int32_t to) {
    pipe_end = to;
    owner = getpid();
    for (int32_t i = 0; i < count; i++) {
        int number = numbers[i];
        if (sigaction(number, NULL, &before[number])) continue;
        taken[number] = before[number].sa_handler != SIG_IGN || number == SIGCHLD;
        if (taken[number]) take(number);
    }
}

void signals_stop_receiving(void) {
    for (int number = 1; number < SIGNALS; number++) {
        if (taken[number]) sigaction(number, &before[number], NULL);
        taken[number] = false;
    }
}

/* Stops this process as Ctrl-Z does, unless the pipe has something to say; whether it did.
 *
 * The stop is made pending before the pipe is looked at: an order to go on that comes later takes it back.
 */
int32_t signals_stop_unless_pending(int32_t from) {
    struct sigaction plain = {.sa_handler = SIG_DFL}, usual;
    const struct timespec at_once = {0, 0};
    struct pollfd news = {.fd = from, .events = POLLIN};
    sigset_t stop, mask;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    pthread_sigmask(SIG_BLOCK, &stop, &mask);
    sigaction(SIGTSTP, &plain, &usual);
    pthread_kill(pthread_self(), SIGTSTP);
    bool quiet = poll(&news, 1, 0) == 0;
    if (quiet) pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
    else sigtimedwait(&stop, NULL, &at_once); /* takes it back */
    sigaction(SIGTSTP, &usual, NULL);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return quiet;
}
