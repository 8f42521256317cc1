/* How many cpus an emulated program sees. Affinities are answered for by the emulation (profiler/native/emulate/cpus.c);
 * these functions read /sys instead, where it cannot answer.
 */
#include "preload.h"
#include "recorder.h"

#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum { CPUS_CALL = 0x6e756d63 }; /* no system call; the emulation sees it, and writes the number */

/* 0: what the host says holds. */
static int shown(void) {
    uint32_t count = 0;
    if (!np_active() || !np_is_emulated()) return 0;
    int saved = errno;
    syscall(CPUS_CALL, &count);
    errno = saved;
    return (int)count;
}

long sysconf(int name) {
    NP_REAL(long, "sysconf", int);
    int count = name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF ? shown() : 0;
    return count ? count : real(name);
}

int get_nprocs(void) {
    NP_REAL(int, "get_nprocs", void);
    int count = shown();
    return count ? count : real();
}

int get_nprocs_conf(void) {
    NP_REAL(int, "get_nprocs_conf", void);
    int count = shown();
    return count ? count : real();
}
