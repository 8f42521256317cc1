/* Children of an emulated program are emulated too: exec runs them under NUMAPLAN_EMULATE_PREFIX (words joined by
 * the unit separator, ending where the program's path goes).
 *
 * These may run in the child of a vfork, in its parent's memory: only the stack is written. system() and popen()
 * start a native shell, which loads this library and comes by here for what it starts. What the program says of
 * the loader (LD_PRELOAD, LD_LIBRARY_PATH) holds for what it starts, and one started with an environment of its
 * own is emulated as well.
 */
#include "preload.h"

#ifndef NUMAPLAN_ENFORCE

#include <alloca.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __aarch64__
enum { OUR_MACHINE = EM_AARCH64 };
#else
enum { OUR_MACHINE = EM_X86_64 };
#endif

enum { WORDS = 64, HEAD = 256, SEPARATOR = '\x1f', EXTRA = WORDS + 8 };

extern char **environ;

struct call { /* what exec is given instead */
    const char *path;
    char **argv, **envp;
    char head[HEAD]; /* first line of a script */
    char program[NP_PATH], self[NP_PATH];
};

static size_t count(char *const *list) {
    size_t n = 0;
    while (list && list[n]) n++;
    return n;
}

static const char *value_of(char *const *envp, const char *name) {
    size_t length = strlen(name);
    for (; envp && *envp; envp++)
        if (!strncmp(*envp, name, length) && (*envp)[length] == '=') return *envp + length + 1;
    return NULL;
}

static const char *const CARRIED[] = {"NUMAPLAN_EMULATE_PREFIX", "NUMAPLAN_LOG", "NUMAPLAN_SKIP"};
enum { CARRIED_COUNT = sizeof CARRIED / sizeof *CARRIED };
static char *carried[CARRIED_COUNT]; /* NAME=VALUE, as this process was started with */

void np_exec_start(void) {
    size_t bytes = 0;
    for (int i = 0; i < CARRIED_COUNT; i++) {
        const char *value = getenv(CARRIED[i]);
        if (!value) return;
        bytes += strlen(CARRIED[i]) + strlen(value) + 2;
    }
    char *text = (char *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED) return;
    for (int i = 0; i < CARRIED_COUNT; i++) {
        carried[i] = text;
        text = stpcpy(stpcpy(stpcpy(text, CARRIED[i]), "="), getenv(CARRIED[i])) + 1;
    }
}

/* 'e': a program for the machine that is emulated (and that this library is built for), '#': a script, 0: neither,
 * left to the kernel.
 */
static int kind_of(const char *path, char head[HEAD]) {
    int file = access(path, X_OK) ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t got = read(file, head, HEAD - 1);
    close(file);
    head[got > 0 ? got : 0] = 0;
    const Elf64_Ehdr *elf = (const void *)head;
    if (got >= (ssize_t)sizeof *elf && !memcmp(head, ELFMAG, SELFMAG))
        return elf->e_ident[EI_CLASS] == ELFCLASS64 && elf->e_machine == OUR_MACHINE ? 'e' : 0;
    return got > 2 && head[0] == '#' && head[1] == '!' ? '#' : 0;
}

/* The interpreter and its one argument, cut out of the script's first line. */
static bool interpreter(char head[HEAD], char **program, char **argument) {
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

static size_t cut_words(char *text, char **words) {
    size_t n = 0;
    for (char *word = text; word && n < WORDS; n++) {
        words[n] = word;
        word = strchr(word, SEPARATOR);
        if (word) *word++ = 0;
    }
    return n;
}

/* The file that a name without a slash means by PATH; the name itself when there is none. */
static const char *search(const char *file, char found[NP_PATH]) {
    const char *path = getenv("PATH");
    if (strchr(file, '/')) return file;
    for (path = path ? path : "/bin:/usr/bin"; *path;) {
        size_t length = strcspn(path, ":");
        int used = snprintf(found, NP_PATH, "%.*s%s%s", (int)length, path, length ? "/" : "", file);
        if (used > 0 && used < NP_PATH && access(found, X_OK) == 0) return found;
        path += length + (path[length] == ':');
    }
    return file;
}

/* To the emulator, /proc/self/exe would be itself. */
static void resolve_self(struct call *call) {
    if (strcmp(call->path, "/proc/self/exe")) return;
    ssize_t length = readlink(call->path, call->self, sizeof call->self - 1);
    if (length > 0) {
        call->self[length] = 0;
        call->path = call->self;
    }
}

static char *entry_of(char *const *envp, const char *name, size_t length) {
    for (; envp && *envp; envp++)
        if (!strncmp(*envp, name, length) && (*envp)[length] == '=') return *envp;
    return NULL;
}

/* What the prefix says of the loader (-E NAME=VALUE), as the program says it now; ours stays the first to be
 * preloaded. Returns how many words are left. joined: room for both values of LD_PRELOAD.
 */
static size_t renew_loader(char **words, size_t n, char *const *envp, char *joined) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(words[i], "-E") || i + 1 == n) {
            words[kept++] = words[i];
            continue;
        }
        char *option = words[i], *word = words[++i];
        size_t length = strcspn(word, "=");
        char *said = entry_of(envp, word, length);
        bool preload = length == 10 && !strncmp(word, "LD_PRELOAD", length), carries = said && !strchr(said, ',');
        if (preload && carries && said[length + 1] && !strstr(said, word + length + 1)) {
            stpcpy(stpcpy(stpcpy(joined, word), ":"), said + length + 1);
            word = joined;
        } else if (!preload) {
            if (!carries) continue;
            word = said;
        }
        words[kept++] = option;
        words[kept++] = word;
    }
    return kept;
}

/* words: room for WORDS + 4 + the arguments; text: a copy of the prefix; joined: see renew_loader. */
static bool rewrite(struct call *call, char *const *argv, char *text, char **words, char *joined) {
    char *script = NULL, *program = NULL, *argument = "", inner[HEAD];
    resolve_self(call);
    int kind = kind_of(call->path, call->head);
    if (kind == '#') {
        script = (char *)call->path;
        if (!interpreter(call->head, &program, &argument) || kind_of(program, inner) != 'e') return false;
    } else if (kind != 'e') {
        return false;
    }
    size_t n = renew_loader(words, cut_words(text, words), call->envp, joined);
    if (!script) {
        words[n++] = "-0";
        words[n++] = argv && argv[0] ? argv[0] : (char *)call->path;
    }
    words[n++] = script ? program : (char *)call->path;
    if (script && *argument) words[n++] = argument;
    if (script) words[n++] = script;
    for (size_t i = 1; argv && argv[0] && argv[i]; i++) words[n++] = argv[i];
    words[n] = NULL;
    words[0] = (char *)search(words[0], call->program);
    call->path = words[0];
    call->argv = words;
    return true;
}

/* The emulator itself must not load this library: its program gets it by the prefix. */
static void emulator_environment(char *const *envp, char **kept) {
    for (char *const *entry = envp; entry && *entry; entry++)
        if (strncmp(*entry, "LD_PRELOAD=", 11)) *kept++ = *entry;
    for (int i = 0; i < CARRIED_COUNT; i++)
        if (carried[i] && !value_of(envp, CARRIED[i])) *kept++ = carried[i];
    *kept = NULL;
}

static const char *prefix_of(char *const *envp) {
    const char *prefix = value_of(envp, CARRIED[0]);
    if (!prefix && carried[0]) prefix = carried[0] + strlen(CARRIED[0]) + 1;
    return prefix && *prefix ? prefix : NULL;
}

/* The arrays live in the caller's frame, hence macros. */
#define PREPARE(call, file, arguments, environment)                                                     \
    struct call call = {.path = file, .argv = (char **)arguments, .envp = (char **)environment};        \
    const char *prefix_##call = prefix_of(environment);                                                 \
    if (prefix_##call) {                                                                                \
        char *text = alloca(strlen(prefix_##call) + 1);                                                 \
        char **words = alloca((count(arguments) + EXTRA) * sizeof *words);                              \
        char **kept = alloca((count(environment) + CARRIED_COUNT + 1) * sizeof *kept);                  \
        const char *own_##call = value_of(environment, "LD_PRELOAD");                                   \
        char *joined = alloca(strlen(prefix_##call) + (own_##call ? strlen(own_##call) : 0) + 2);       \
        strcpy(text, prefix_##call);                                                                    \
        emulator_environment(environment, kept);                                                        \
        if (rewrite(&call, arguments, text, words, joined)) call.envp = kept;                           \
    }

#define REAL(type, name, ...)                                                   \
    static type (*real)(__VA_ARGS__);                                           \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, name)

int execve(const char *path, char *const argv[], char *const envp[]) {
    REAL(int, "execve", const char *, char *const[], char *const[]);
    PREPARE(call, path, argv, envp);
    return real(call.path, call.argv, call.envp);
}

int execvpe(const char *file, char *const argv[], char *const envp[]) {
    REAL(int, "execvpe", const char *, char *const[], char *const[]);
    if (!prefix_of(envp)) return real(file, argv, envp);
    char found[NP_PATH];
    const char *path = search(file, found);
    PREPARE(call, path, argv, envp);
    return real(call.path, call.argv, call.envp); /* runs a script without #! by the shell, as it should */
}

int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }
int execvp(const char *file, char *const argv[]) { return execvpe(file, argv, environ); }

#define COLLECT(first, argv)                                              \
    va_list list, again;                                                  \
    va_start(list, first);                                                \
    va_copy(again, list);                                                 \
    size_t words = 1;                                                     \
    while (va_arg(list, char *)) words++;                                 \
    char **argv = alloca((words + 1) * sizeof *argv);                     \
    argv[0] = (char *)first;                                              \
    for (size_t i = 1; i <= words; i++) argv[i] = va_arg(again, char *);  \
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
    REAL(int, "fexecve", int, char *const[], char *const[]);
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    struct call facts;
    if (!prefix_of(envp) || kind_of(link, facts.head) != 'e') return real(file, argv, envp);
    ssize_t length = readlink(link, facts.program, sizeof facts.program - 1);
    if (length <= 0) return real(file, argv, envp);
    facts.program[length] = 0;
    return execve(facts.program, argv, envp);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
    REAL(int, "posix_spawn", pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
         char *const[], char *const[]);
    char *const *environment = envp ? envp : environ;
    PREPARE(call, path, argv, environment);
    return real(pid, call.path, actions, attributes, call.argv, call.envp);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
    REAL(int, "posix_spawnp", pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
         char *const[], char *const[]);
    char *const *environment = envp ? envp : environ;
    char found[NP_PATH];
    const char *path = prefix_of(environment) ? search(file, found) : file;
    PREPARE(call, path, argv, environment);
    return real(pid, call.path, actions, attributes, call.argv, call.envp);
}

#endif
