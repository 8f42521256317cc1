/* Programs that restrict their own system calls (seccomp), as browsers, archivers and servers do before they open what others
 * send them: a call that such a program never makes itself may be its death. So before a filter comes, what needs calls is
 * done (a hook's last chance); from then on this library writes into its own memory only.
 *
 * A filter that comes past libc is noticed before the calls that filters forbid: the kernel says so, where there was none
 * at the start. One that was there at exec is found in processes.c.
 */
#include "preload.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATIENCE = 10000 };

static _Atomic bool sandboxed;
static _Atomic int inside; /* threads that may be about to make a call */
static NP_THREAD bool here; /* a child of vfork restricts itself, in our memory */

static int real_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
    NP_REAL(int, "prctl", int, ...);
    return real(option, a, b, c, d);
}

bool np_sandboxed(void) { return atomic_load_explicit(&sandboxed, memory_order_acquire) || here; }

bool np_may_call(void) {
    if (np_sandboxed()) return false;
    if (np_filtered_at_start())
        return true; /* a container's: what it forbids fails, and the kernel tells nothing new */
    int saved = errno;
    bool filtered = real_prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
    errno = saved;
    if (filtered && !atomic_exchange(&sandboxed, true)) np_log(NP_SANDBOX, np_thread_number(), 0, 0, 0, 0, 0);
    return !filtered;
}

bool np_enter(void) {
    atomic_fetch_add(&inside, 1);
    if (!np_sandboxed()) return true;
    atomic_fetch_sub(&inside, 1);
    return false;
}

void np_leave(void) { atomic_fetch_sub(&inside, 1); }

/* True: it was not before. */
static bool coming(void) {
    int saved = errno;
    bool news = np_awake() && !np_sandboxed();
    if (news && getpid() != np_home()) {
        here = true;
    } else if (news) {
        NP_TELL(sandbox_coming);
        np_log(NP_SANDBOX, np_thread_number(), 0, 0, 0, 0, 0);
        atomic_store(&sandboxed, true);
        for (int turn = 0; atomic_load(&inside) && turn < PATIENCE; turn++) sched_yield();
        np_log_keep_room();
    }
    errno = saved;
    return news;
}

static void came(bool news, long result) {
    if (!news || result >= 0) return;
    here = false;
    atomic_store(&sandboxed, false);
}

int prctl(int option, ...) {
    va_list more;
    unsigned long a[4];
    va_start(more, option);
    for (int i = 0; i < 4; i++) a[i] = va_arg(more, unsigned long);
    va_end(more);
    bool news = option == PR_SET_SECCOMP && (a[0] == SECCOMP_MODE_STRICT || a[1]) && coming();
    int result = real_prctl(option, a[0], a[1], a[2], a[3]);
    came(news, result);
    return result;
}

/* Those that only ask what the kernel knows are no restrictions: without a filter, or with flags that do not go together. */
static bool restricts(const long a[6]) {
    return (a[0] == SECCOMP_SET_MODE_STRICT && !a[1] && !a[2]) || (a[0] == SECCOMP_SET_MODE_FILTER && a[2]);
}

/* Of the six arguments a caller gives those that its call has; the rest is read from wherever it would be, as libc does. */
__attribute__((no_sanitize_address)) long syscall(long number, ...) {
    NP_REAL(long, "syscall", long, ...);
    va_list more;
    long a[6], result;
    va_start(more, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(more, long);
    va_end(more);
    if (np_hooks.call && np_hooks.call(number, a, &result)) return result;
    bool news = ((number == SYS_seccomp && restricts(a)) ||
                 (number == SYS_prctl && a[0] == PR_SET_SECCOMP && (a[1] == SECCOMP_MODE_STRICT || a[2]))) &&
                coming();
    result = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    came(news, result);
    NP_TELL(called, number, a, result);
    return result;
}
