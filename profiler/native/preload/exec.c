/* Children of an emulated program are emulated too: exec runs them under NUMAPLAN_EMULATE_PREFIX (words joined by
 * the unit separator, ending where the program's path goes).
 *
 * These may run in the child of a vfork, in its parent's memory: only the stack is written. system() and popen()
 * start a native shell, which loads this library and comes by here for what it starts.
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

/* words: room for WORDS + 4 + the arguments; text: a copy of the prefix. */
static bool rewrite(struct call *call, char *const *argv, char *text, char **words) {
    char *script = NULL, *program = NULL, *argument = "", inner[HEAD];
    resolve_self(call);
    int kind = kind_of(call->path, call->head);
    if (kind == '#') {
        script = (char *)call->path;
        if (!interpreter(call->head, &program, &argument) || kind_of(program, inner) != 'e') return false;
    } else if (kind != 'e') {
        return false;
    }
    size_t n = cut_words(text, words);
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
static void without_preload(char *const *envp, char **kept) {
    for (; envp && *envp; envp++)
        if (strncmp(*envp, "LD_PRELOAD=", 11)) *kept++ = *envp;
    *kept = NULL;
}

static const char *prefix_of(char *const *envp) {
    const char *prefix = value_of(envp, "NUMAPLAN_EMULATE_PREFIX");
    return prefix && *prefix ? prefix : NULL;
}

/* The arrays live in the caller's frame, hence macros. */
#define PREPARE(call, file, arguments, environment)                                                     \
    struct call call = {.path = file, .argv = (char **)arguments, .envp = (char **)environment};        \
    const char *prefix_##call = prefix_of(environment);                                                 \
    if (prefix_##call) {                                                                                \
        char *text = alloca(strlen(prefix_##call) + 1);                                                 \
        char **words = alloca((count(arguments) + EXTRA) * sizeof *words);                              \
        char **kept = alloca((count(environment) + 1) * sizeof *kept);                                  \
        strcpy(text, prefix_##call);                                                                    \
        without_preload(environment, kept);                                                             \
        if (rewrite(&call, arguments, text, words)) call.envp = kept;                                   \
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
