/* Programs that a program with the library starts and that cannot load it: exec runs the tracer in their place, which
 * names the process, attaches to it from outside if the plan knows it, and becomes the program.
 */
#include "enforce.h"
#include "exec.h"
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD"
enum { BEFORE = 8 }; /* arguments of the tracer, before those of the program */
enum { TRACER, PLAN, LOG, OVERRIDE, KNOWN };

_Static_assert((int)NP_KEPT >= (int)PT_MASK, "a thread's mask is kept in what exec is given");

static const char *const NAMES[KNOWN] = {"NUMAPLAN_TRACER", "NUMAPLAN_PLAN", "NUMAPLAN_LOG", "NUMAPLAN_OVERRIDE"};
/* As this process was started: it may clear its environment later. */
static char *known[KNOWN];

struct room {
    char self[NP_PATH];
    char fit[2];
    char *rest[]; /* arguments, environment, text */
};

__attribute__((constructor(102))) static void remember(void) {
    size_t bytes = 0;
    for (int i = 0; i < KNOWN; i++) bytes += getenv(NAMES[i]) ? strlen(getenv(NAMES[i])) + 1 : 0;
    if (!bytes || !np_active()) return;
    char *text = (char *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED) return;
    for (int i = 0; i < KNOWN; i++) {
        const char *value = getenv(NAMES[i]);
        if (!value) continue;
        known[i] = text;
        text = stpcpy(text, value) + 1;
    }
}

/* Under a debugger or another tracer nobody can attach, and it counts the execs of what it starts. */
static bool has_tracer(void) {
    char text[1024];
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[got > 0 ? got : 0] = 0;
    const char *tracer = strstr(text, "TracerPid:");
    return tracer && atoi(tracer + strlen("TracerPid:")) != 0;
}

static const char *tracer(void) {
    bool usable = known[TRACER] && known[LOG] && access(known[TRACER], X_OK) == 0 && !has_tracer();
    return usable ? known[TRACER] : NULL;
}

/* A fork of which the program will never hear: no signal at its end, and not among its children. */
static pid_t quiet_fork(void) { return (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL); }

bool nf_follow_from_outside(void) {
    extern char **environ;
    char pid[16], entry[16], answer, *by = (char *)tracer(), *log = (char *)np_log_path();
    int attached[2]; /* a pipe: the tracer writes when it has */
    if (!by || !log || pipe2(attached, O_CLOEXEC)) return false;
    snprintf(pid, sizeof pid, "%d", getpid());
    snprintf(entry, sizeof entry, "%u", np_process_entry());
    char *argv[] = {by, "follow", known[PLAN], known[LOG], known[OVERRIDE] ? "hold" : "yield", pid, entry, log, NULL};
    char *kept[] = {NULL};
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pid_t between = quiet_fork();
    if (between == 0) {
        NP_REAL(int, "execve", const char *, char *const[], char *const[]);
        unsigned char ours[PT_MASK];
        nf_unbind(NULL, 0, ours); /* it tells what we have to those that it follows */
        dup2(attached[1], STDOUT_FILENO);
        real(by, argv, kept);
        syscall(SYS_exit_group, 1);
    }
    close(attached[1]);
    ssize_t got = -1; /* the program's signals may break waits off */
    while (between > 0 && (got = read(attached[0], &answer, 1)) < 0 && errno == EINTR) {}
    close(attached[0]);
    while (between > 0 && waitpid(between, NULL, __WCLONE) < 0 && errno == EINTR) {}
    prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    return got == 1;
}

static size_t room_without_us(const struct np_exec *call) {
    const char *preload = np_value_of(call->envp, PRELOAD);
    return preload ? (np_count(call->envp) + 2) * sizeof(char *) + sizeof PRELOAD + strlen(preload) + 1 : 0;
}

size_t nf_exec_room(struct np_exec *call) {
    if (known[PLAN] && np_sandboxed()) return room_without_us(call);
    if (!known[PLAN] || (call->fit = np_fit_of(call->path)) == NP_FITS) return 0;
    const char *preload = np_value_of(call->envp, PRELOAD);
    size_t arrays = np_count(call->argv) + BEFORE + 2 + np_count(call->envp) + 2;
    return sizeof(struct room) + arrays * sizeof(char *) + sizeof PRELOAD + (preload ? strlen(preload) : 0) + 1;
}

/* The environment without LD_PRELOAD: the tracer itself must not load us. Returns where it ends. */
static char **without_preload(char *const *envp, char **kept) {
    for (; envp && *envp; envp++)
        if (strncmp(*envp, PRELOAD "=", sizeof PRELOAD)) *kept++ = *envp;
    *kept = NULL;
    return kept;
}

/* Where system calls are restricted it is not known what would start with this library: neither is it of use there. */
static void leave_out(struct np_exec *call, char **kept) {
    char *text = (char *)(kept + np_count(call->envp) + 2), *value = stpcpy(text, PRELOAD "=");
    char **end = without_preload(call->envp, kept);
    if (*np_preload_without_us(np_value_of(call->envp, PRELOAD), value)) end[0] = text, end[1] = NULL;
    call->envp = kept;
}

void nf_exec_change(struct np_exec *call, void *given) {
    if (np_sandboxed()) {
        leave_out(call, given);
        return;
    }
    struct room *room = given;
    char **argv = room->rest, **kept = argv + np_count(call->argv) + BEFORE + 2;
    char *text = (char *)(kept + np_count(call->envp) + 2), *value = stpcpy(text, PRELOAD "=");
    const char *preload = np_value_of(call->envp, PRELOAD), *by = tracer();
    if (preload && call->fit == NP_FOREIGN) np_preload_without_us(preload, value);
    else strcpy(value, preload ? preload : "");
    char **end = without_preload(call->envp, kept);
    call->envp = kept;
    if (!by) {
        nf_leave_part();
        if (*value) end[0] = text, end[1] = NULL;
        return;
    }
    np_resolve_self(call, room->self);
    room->fit[0] = (char)('0' + call->fit);
    room->fit[1] = 0;
    char *first[BEFORE] = {(char *)by, "exec", known[PLAN],       known[LOG], known[OVERRIDE] ? "hold" : "yield",
                           room->fit,  text,   (char *)call->path};
    memcpy(argv, first, sizeof first);
    for (size_t i = 0; i <= np_count(call->argv); i++) argv[BEFORE + i] = call->argv ? call->argv[i] : NULL;
    call->path = by;
    call->argv = argv;
}

/* As it will be after exec, which takes privileges from who has become somebody else: so does access. */
static bool can(int mode, const char *folder, size_t length, const char *name) {
    char path[NP_PATH];
    if (length + strlen(name) >= sizeof path) return false;
    memcpy(path, folder, length);
    strcpy(path + length, name);
    return access(path, mode) == 0;
}

/* Whether the program that is started will have this library and its plan. */
static bool takes_us(const struct np_exec *call) {
    const char *preload = np_value_of(call->envp, PRELOAD);
    if (geteuid() != getuid() || getegid() != getgid()) return false; /* the loader leaves us out */
    if (prctl(PR_GET_SECUREBITS) & SECBIT_NO_SETUID_FIXUP) return false; /* access does not know then */
    for (int i = PLAN; i <= LOG; i++) {
        const char *value = np_value_of(call->envp, NAMES[i]);
        if (!value || !known[i] || strcmp(value, known[i])) return false;
    }
    size_t length = 0;
    const char *ours = preload && call->fit == NP_FITS ? np_preload_of_us(preload, &length) : NULL;
    return ours && can(R_OK, ours, length, "") && can(R_OK, known[PLAN], strlen(known[PLAN]), "") &&
           can(R_OK | W_OK, known[LOG], strlen(known[LOG]), "/control");
}

/* What is started finds the mask that the thread would have without us: without this library (env -i, chroot, a user who
 * may not read it) nothing else would take the thread off its cpus. With it, it tells its program that mask, and starts
 * on the cpus of its plan: what the loader reads and writes is on their node.
 */
bool nf_exec_leaves(struct np_exec *call) {
    if (!known[PLAN] || !np_may_call()) return false;
    int saved = errno;
    uint32_t count = 0;
    const uint32_t *cpus = takes_us(call) ? nf_cpus_after_exec(call, &count) : NULL;
    bool left = nf_unbind(cpus, count, call->kept);
    if (left) nf_balance_after_exec(true);
    errno = saved;
    return left;
}

void nf_exec_over(struct np_exec *call) {
    nf_bind_again(call->kept);
    nf_balance_after_exec(false);
}
