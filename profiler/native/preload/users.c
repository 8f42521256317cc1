/* Programs that become another user, as servers do that root starts: from then on they may not be able to open the log, nor
 * to make it longer. So it is open by then, and has room.
 */
#include "preload.h"

#include <sys/single_threaded.h>
#include <unistd.h>

static void coming(uid_t user) {
    int saved = errno;
    if (user != 0 && np_awake() && getpid() == np_home() && geteuid() == 0 && np_enter()) {
        /* Other threads may be about to make it longer themselves. */
        if (np_may_call() && np_log_open() && __libc_single_threaded) np_log_keep_room();
        np_leave();
    }
    errno = saved;
}

int setuid(uid_t user) {
    NP_REAL(int, "setuid", uid_t);
    coming(user);
    return real(user);
}

int seteuid(uid_t user) {
    NP_REAL(int, "seteuid", uid_t);
    coming(user);
    return real(user);
}

int setreuid(uid_t user, uid_t effective) {
    NP_REAL(int, "setreuid", uid_t, uid_t);
    coming(effective);
    return real(user, effective);
}

int setresuid(uid_t user, uid_t effective, uid_t kept) {
    NP_REAL(int, "setresuid", uid_t, uid_t, uid_t);
    coming(effective);
    return real(user, effective, kept);
}
