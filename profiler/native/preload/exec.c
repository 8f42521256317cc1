/* The family of exec, wrapped: each call is changed where a hook wants it, else it is libc's own. */
#include "exec.h"

#include "preload.h"

#include <alloca.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined __aarch64__
enum { OUR_MACHINE = EM_AARCH64, OUR_MACHINE_32 = EM_ARM };
#else
enum { OUR_MACHINE = EM_X86_64, OUR_MACHINE_32 = EM_386 };
#endif

extern char **environ;

int np_kind_of(const char *path, char head[NP_HEAD]) {
    int file = access(path, X_OK) ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t got = read(file, head, NP_HEAD - 1);
    close(file);
    head[got > 0 ? got : 0] = 0;
    const Elf64_Ehdr *elf = (const void *)head;
    if (got >= (ssize_t)sizeof *elf && !memcmp(head, ELFMAG, SELFMAG)) {
        if (elf->e_ident[EI_CLASS] == ELFCLASS64) return elf->e_machine == OUR_MACHINE ? 'e' : 0;
        return elf->e_machine == OUR_MACHINE_32 ? '3' : 0; /* the field is where it is in 64 bits */
    }
    return got > 2 && head[0] == '#' && head[1] == '!' ? '#' : 0;
}

bool np_interpreter(char head[NP_HEAD], char **program, char **argument) {
    char *end = strchr(head, '\n');
    if (!end) return false;
    while (end > head && strchr(" \t\r\n", *end)) *end-- = 0;
    *program = head + 2 + strspn(head + 2, " \t");
    *argument = *program + strcspn(*program, " \t");
    if (**argument) {
        *(*argument)++ = 0;
        *argument += strspn(*argument, " \t");
    }
    return **program != 0;
}

const char *np_search(const char *file, char *found) {
    const char *path = getenv("PATH");
    struct stat facts;
    if (strchr(file, '/')) return file;
    for (path = path ? path : "/bin:/usr/bin"; *path;) {
        size_t length = strcspn(path, ":");
        int used = snprintf(found, NP_PATH, "%.*s%s%s", (int)length, path, length ? "/" : "", file);
        if (used > 0 && used < NP_PATH && access(found, X_OK) == 0 && stat(found, &facts) == 0 &&
            S_ISREG(facts.st_mode))
            return found;
        path += length + (path[length] == ':');
    }
    return file;
}

void np_resolve_self(struct np_exec *call, char *self) {
    if (strcmp(call->path, "/proc/self/exe")) return;
    ssize_t length = readlink(call->path, self, NP_PATH - 1);
    if (length <= 0) return;
    self[length] = 0;
    call->path = self;
}

static size_t room_for(struct np_exec *call) { return np_hooks.exec_room ? np_hooks.exec_room(call) : 0; }

static bool leaves(struct np_exec *call) { return np_hooks.exec_leaves && np_hooks.exec_leaves(call); }

/* What exec returned, if it did. */
static int over(struct np_exec *call, bool left, int result) {
    int saved = errno;
    if (left) np_hooks.exec_over(call);
    errno = saved;
    return result;
}

/* The room lives in the caller's frame, hence a macro. */
#define PREPARE(call, file, arguments, environment)                                                 \
    struct np_exec call = {.path = file, .argv = (char **)arguments, .envp = (char **)environment}; \
    size_t room_##call = room_for(&call);                                                           \
    if (room_##call) np_hooks.exec_change(&call, alloca(room_##call))

int execve(const char *path, char *const argv[], char *const envp[]) {
    NP_REAL(int, "execve", const char *, char *const[], char *const[]);
    PREPARE(call, path, argv, envp);
    bool left = leaves(&call);
    return over(&call, left, real(call.path, call.argv, call.envp));
}

int execvpe(const char *file, char *const argv[], char *const envp[]) {
    NP_REAL(int, "execvpe", const char *, char *const[], char *const[]);
    char found[NP_PATH];
    PREPARE(call, np_search(file, found), argv, envp);
    bool left = leaves(&call);
    /* libc's runs a script without #! by the shell, as it should. */
    return over(&call, left, room_call ? real(call.path, call.argv, call.envp) : real(file, argv, envp));
}

int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }
int execvp(const char *file, char *const argv[]) { return execvpe(file, argv, environ); }

#define COLLECT(first, argv)                                             \
    va_list list, again;                                                 \
    va_start(list, first);                                               \
    va_copy(again, list);                                                \
    size_t words = 1;                                                    \
    while (va_arg(list, char *)) words++;                                \
    char **argv = alloca((words + 1) * sizeof *argv);                    \
    argv[0] = (char *)first;                                             \
    for (size_t i = 1; i <= words; i++) argv[i] = va_arg(again, char *); \
    va_end(list)

int execl(const char *path, const char *first, ...) {
    COLLECT(first, argv);
    va_end(again);
    return execve(path, argv, environ);
}

int execlp(const char *file, const char *first, ...) {
    COLLECT(first, argv);
    va_end(again);
    return execvpe(file, argv, environ);
}

int execle(const char *path, const char *first, ...) {
    COLLECT(first, argv);
    char **envp = va_arg(again, char **);
    va_end(again);
    return execve(path, argv, envp);
}

int fexecve(int file, char *const argv[], char *const envp[]) {
    NP_REAL(int, "fexecve", int, char *const[], char *const[]);
    char link[40], head[NP_HEAD], program[NP_PATH];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = np_kind_of(link, head) == 'e' ? readlink(link, program, sizeof program - 1) : 0;
    if (length <= 0) return real(file, argv, envp);
    program[length] = 0;
    struct np_exec call = {.path = program, .argv = (char **)argv, .envp = (char **)envp};
    if (room_for(&call)) return execve(program, argv, envp);
    bool left = leaves(&call);
    return over(&call, left, real(file, argv, envp));
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
    NP_REAL(int, "posix_spawn", pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
            char *const[], char *const[]);
    PREPARE(call, path, argv, (envp ? envp : environ));
    call.spawns = true;
    bool left = leaves(&call);
    return over(&call, left, real(pid, call.path, actions, attributes, call.argv, call.envp));
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
    NP_REAL(int, "posix_spawnp", pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
            char *const[], char *const[]);
    char found[NP_PATH];
    PREPARE(call, np_search(file, found), argv, (envp ? envp : environ));
    call.spawns = true;
    bool left = leaves(&call);
    return over(&call, left, real(pid, room_call ? call.path : file, actions, attributes, call.argv, call.envp));
}
