/* When the library begins and ends its work in a process. */
#include "preload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ASLEEP, WAKING, AWAKE, NOT_OURS };

static _Atomic int state;
static _Atomic bool ended;
static pid_t here; /* a vfork child runs in our memory, but has nothing to end */

/* NUMAPLAN_SKIP: names of such programs, joined by colons. */
bool np_only_carries(const char *name) {
    const char *list = np_env("NUMAPLAN_SKIP");
    size_t length = strlen(name);
    while (list && *list) {
        size_t word = strcspn(list, ":");
        if (word == length && !memcmp(list, name, length)) return true;
        list += word + (list[word] == ':');
    }
    return false;
}

static void before_fork(void) {
    np_modules_before_fork();
    np_fork_prepare();
}

static void after_fork(void) { np_modules_after_fork(false); }

static void forked(void) {
    np_modules_after_fork(true);
    if (atomic_load(&state) != AWAKE) return;
    uint32_t image = np_log_image();
    np_log_forget();
    if (np_sandboxed()) { /* to find out who it is would take calls */
        atomic_store(&state, NOT_OURS);
        return;
    }
    here = getpid();
    np_fork_child(image);
    np_threads_start(true);
    NP_TELL(forked);
}

static NP_COLD bool wake(void) {
    int expected = ASLEEP;
    extern char **environ;
    if (!environ) return false; /* libc is not ready */
    if (!atomic_compare_exchange_strong(&state, &expected, WAKING)) return false;
    int saved = errno;
    here = getpid();
    bool ours = !np_only_carries(program_invocation_short_name) && np_processes_open();
    if (ours) {
        pthread_atfork(before_fork, after_fork, forked);
        NP_TELL(start);
        np_threads_start(false);
        atomic_store(&state, AWAKE);
        np_modules_scan();
    } else {
        atomic_store(&state, NOT_OURS);
    }
    errno = saved;
    return ours;
}

bool np_awake(void) { return atomic_load_explicit(&state, memory_order_acquire) == AWAKE; }

pid_t np_home(void) { return here; }

bool np_active(void) {
    int now = atomic_load_explicit(&state, memory_order_acquire);
    return now == AWAKE || (now == ASLEEP && wake());
}

__attribute__((constructor(101))) static void at_load(void) {
    np_reals_find();
    np_active();
}

__attribute__((destructor(101))) static void at_exit(void) {
    if (atomic_load(&state) != AWAKE) return;
    if ((!np_sandboxed() && getpid() != here) || atomic_exchange(&ended, true)) return;
    np_modules_scan();
    NP_TELL(end);
    np_process_end();
}

_Noreturn void _exit(int code) {
    at_exit();
    for (;;) syscall(SYS_exit_group, code);
}

_Noreturn void _Exit(int code) { _exit(code); }
