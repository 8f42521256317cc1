/* SIGSEGV: our handler first, then the program's, which sees everything as if ours did not exist. */
#include "next_touch.h"
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { SIGNALS = 64, SAME_FAULT = 64, NESTED = 1 << 20 };

static _Atomic bool catching;
static struct sigaction program_action; /* under the lock */
static NP_THREAD uintptr_t chained; /* frame in which the program's handler runs, or has been left by a jump */
static NP_THREAD uintptr_t last_address;
static NP_THREAD unsigned same; /* how often it faulted there without a reason that we can see */

static int real_sigaction(int number, const struct sigaction *wanted, struct sigaction *old) {
    NP_REAL(int, "sigaction", int, const struct sigaction *, struct sigaction *);
    return real(number, wanted, old);
}

static struct sigaction swap_program_action(const struct sigaction *wanted) {
    unsigned long blocked = nt_lock();
    struct sigaction old = program_action;
    if (wanted) program_action = *wanted;
    nt_unlock(blocked);
    return old;
}

/* ---- the program's turn ---- */

static uintptr_t interrupted_stack(const ucontext_t *context) {
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    return context->uc_mcontext.sp;
#else
    (void)context;
    return 0;
#endif
}

/* In the program's handler, where its own SIGSEGV would be blocked? It may have left it by siglongjmp. */
static bool in_program_handler(const ucontext_t *context) {
    uintptr_t stack = interrupted_stack(context);
    return chained && stack < chained && chained - stack < NESTED;
}

/* Die as without us: of the same instruction, or of the signal that was sent. */
static void by_default(int number, bool sent) {
    struct sigaction plain = {.sa_handler = SIG_DFL};
    real_sigaction(number, &plain, NULL);
    if (sent) syscall(SYS_tgkill, getpid(), gettid(), number);
}

static void call_program_handler(const struct sigaction *action, int number, siginfo_t *info, void *context) {
    const ucontext_t *before = context;
    sigset_t mask;
    sigorset(&mask, &before->uc_sigmask, &action->sa_mask);
    sigdelset(&mask, SIGSEGV); /* marked memory is touched here too */
    uintptr_t outer = chained;
    chained = (uintptr_t)__builtin_frame_address(0);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(unsigned long));
    if (action->sa_flags & SA_SIGINFO) action->sa_sigaction(number, info, context);
    else action->sa_handler(number);
    chained = outer;
}

static void chain(int number, siginfo_t *info, void *context) {
    struct sigaction action = swap_program_action(NULL);
    bool sent = info->si_code <= 0;
    bool ignored = action.sa_handler == SIG_IGN, none = ignored || action.sa_handler == SIG_DFL;
    if (ignored && sent) return;
    bool nested = !(action.sa_flags & SA_NODEFER) && !sent && in_program_handler(context);
    if (none || nested) {
        by_default(number, sent);
        return;
    }
    if (action.sa_flags & (int)SA_RESETHAND) swap_program_action(&(struct sigaction){.sa_handler = SIG_DFL});
    call_program_handler(&action, number, info, context);
}

/* ---- ours ---- */

static int rights_wanted(const ucontext_t *context) {
#if defined(__x86_64__)
    unsigned long error = (unsigned long)context->uc_mcontext.gregs[REG_ERR];
    return error & 16 ? PROT_EXEC : error & 2 ? PROT_WRITE : PROT_READ;
#else
    (void)context;
    return PROT_READ;
#endif
}

/* Another thread touched it first, and it is accessible by now. Not for ever: what the mapping allows is not all. */
static bool allowed_by_now(uintptr_t address, const ucontext_t *context) {
    struct nt_vma vma = {0};
    same = address == last_address ? same + 1 : 0;
    last_address = address;
    if (same > SAME_FAULT) return false;
    unsigned long blocked = nt_lock();
    size_t found = nt_vmas(address, address + 1, &vma, 1);
    nt_unlock(blocked);
    return found && (vma.protection & rights_wanted(context));
}

static void on_fault(int number, siginfo_t *info, void *context) {
    int saved = errno;
    uintptr_t address = (uintptr_t)info->si_addr;
    bool ours = info->si_code == SEGV_ACCERR && (nt_resolve(address) || allowed_by_now(address, context));
    errno = saved;
    if (!ours) chain(number, info, context);
    errno = saved;
}

/* ---- once ---- */

/* A handler that runs with SIGSEGV blocked could not touch marked memory. */
static void unblock_in_handlers(void) {
    for (int number = 1; number <= SIGNALS; number++) {
        struct sigaction action;
        if (number == SIGSEGV || real_sigaction(number, NULL, &action)) continue;
        bool none = !(action.sa_flags & SA_SIGINFO) && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
        if (none || sigismember(&action.sa_mask, SIGSEGV) != 1) continue;
        sigdelset(&action.sa_mask, SIGSEGV);
        real_sigaction(number, &action, NULL);
    }
}

enum { UNTRIED, READY, IMPOSSIBLE, RETIRED };
static _Atomic int state;

/* The lock is held: a child finds it done, or not begun. */
static void set_handler_once(void) {
    struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    memset(&ours.sa_mask, 0xff, sizeof ours.sa_mask); /* libc's own too, which sigfillset leaves out */
    bool good = real_sigaction(SIGSEGV, NULL, &program_action) == 0;
    atomic_store(&catching, good);
    good = good && real_sigaction(SIGSEGV, &ours, NULL) == 0;
    atomic_store(&catching, good);
    if (good) unblock_in_handlers();
    atomic_store(&state, good ? READY : IMPOSSIBLE);
}

bool nt_catch_faults(void) {
    struct sigaction unused;
    sigset_t segv;
    if (atomic_load(&state) != UNTRIED) return atomic_load(&state) == READY;
    real_sigaction(SIGSEGV, NULL, &unused); /* finds libc's, which may allocate: not under the lock */
    unsigned long blocked = nt_lock();
    bool first = atomic_load(&state) == UNTRIED;
    if (first) set_handler_once();
    nt_unlock(blocked);
    if (first && atomic_load(&state) == READY) {
        sigemptyset(&segv);
        sigaddset(&segv, SIGSEGV);
        syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &segv, NULL, sizeof(unsigned long));
        np_live_watch_all();
    }
    return atomic_load(&state) == READY;
}

void nt_retire(void) {
    nt_flush();
    nt_release(0, UINTPTR_MAX);
    unsigned long blocked = nt_lock();
    if (atomic_exchange(&state, RETIRED) == READY) {
        atomic_store(&catching, false);
        real_sigaction(SIGSEGV, &program_action, NULL);
    }
    nt_unlock(blocked);
}

bool nt_retired(void) { return atomic_load(&state) == RETIRED; }

/* ---- what the program asks for ---- */

int sigaction(int number, const struct sigaction *wanted, struct sigaction *old) {
    if (!atomic_load_explicit(&catching, memory_order_acquire)) return real_sigaction(number, wanted, old);
    if (number != SIGSEGV) {
        struct sigaction open;
        if (!wanted) return real_sigaction(number, wanted, old);
        open = *wanted;
        sigdelset(&open.sa_mask, SIGSEGV);
        return real_sigaction(number, &open, old);
    }
    struct sigaction fresh, before;
    if (wanted) fresh = *wanted;
    before = swap_program_action(wanted ? &fresh : NULL);
    if (old) *old = before;
    return 0;
}

static sighandler_t set_handler(int number, sighandler_t handler, int flags) {
    struct sigaction fresh = {.sa_handler = handler, .sa_flags = flags}, old;
    sigemptyset(&fresh.sa_mask);
    if (!(flags & SA_NODEFER)) sigaddset(&fresh.sa_mask, number);
    return sigaction(number, &fresh, &old) ? SIG_ERR : old.sa_handler;
}

sighandler_t signal(int number, sighandler_t handler) {
    NP_REAL(sighandler_t, "signal", int, sighandler_t);
    if (number != SIGSEGV || !atomic_load(&catching)) return real(number, handler);
    return set_handler(number, handler, SA_RESTART);
}

sighandler_t bsd_signal(int number, sighandler_t handler) { return signal(number, handler); }

sighandler_t __sysv_signal(int number, sighandler_t handler) {
    NP_REAL(sighandler_t, "__sysv_signal", int, sighandler_t);
    if (number != SIGSEGV || !atomic_load(&catching)) return real(number, handler);
    return set_handler(number, handler, (int)(SA_RESETHAND | SA_NODEFER));
}

sighandler_t sysv_signal(int number, sighandler_t handler) { return __sysv_signal(number, handler); }

/* Where SIGSEGV is blocked, marked memory would be death; nothing else comes of blocking it. */
static const sigset_t *without_segv(int how, const sigset_t *set, sigset_t *copy) {
    if (!set || how == SIG_UNBLOCK || sigismember(set, SIGSEGV) != 1) return set;
    *copy = *set;
    sigdelset(copy, SIGSEGV);
    return copy;
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old) {
    NP_REAL(int, "pthread_sigmask", int, const sigset_t *, sigset_t *);
    sigset_t copy;
    return real(how, without_segv(how, set, &copy), old);
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old) {
    NP_REAL(int, "sigprocmask", int, const sigset_t *, sigset_t *);
    sigset_t copy;
    return real(how, without_segv(how, set, &copy), old);
}
