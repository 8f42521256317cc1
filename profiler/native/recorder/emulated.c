/* Children of an emulated program are emulated too: exec runs them under NUMAPLAN_EMULATE_PREFIX (words joined by
 * the unit separator, ending where the program's path goes).
 *
 * system() and popen() start a native shell, which loads this library and comes by here for what it starts. What
 * the program says of the loader (LD_PRELOAD, LD_LIBRARY_PATH) holds for what it starts, and one started with an
 * environment of its own is emulated as well.
 */
#include "exec.h"
#include "preload.h"
#include "processes.h"
#include "recorder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD"
enum { WORDS = 64, SEPARATOR = '\x1f', EXTRA = WORDS + 8 };

static const char *const CARRIED[] = {"NUMAPLAN_EMULATE_PREFIX", "NUMAPLAN_LOG", "NUMAPLAN_SKIP", "NUMAPLAN_STARTER"};
enum { CARRIED_COUNT = sizeof CARRIED / sizeof *CARRIED };
static char *carried[CARRIED_COUNT]; /* NAME=VALUE, as this process was started with */

static struct stat emulator; /* the file, as this process was started by it */

struct room { /* in the frame of who calls exec; then the arrays and texts */
    char head[NP_HEAD]; /* first line of a script */
    char program[NP_PATH], self[NP_PATH];
    char *rest[];
};

/* The first word of the prefix. */
static bool find_emulator(const char *prefix, struct stat *facts) {
    char path[NP_PATH];
    size_t length = strcspn(prefix, (char[]){SEPARATOR, 0});
    if (length >= sizeof path) return false;
    memcpy(path, prefix, length);
    path[length] = 0;
    return !stat(path, facts);
}

/* Under another root it may be missing, or another one, which knows no plugin. */
static bool is_here(const char *prefix) {
    struct stat now;
    return !emulator.st_ino ||
           (find_emulator(prefix, &now) && now.st_ino == emulator.st_ino && now.st_dev == emulator.st_dev);
}

void np_emulated_start(void) {
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
    if (!find_emulator(getenv(CARRIED[0]), &emulator)) emulator.st_ino = 0;
}

/* Of a native shell in between, too, where it does no harm. */
bool np_is_emulated(void) { return carried[0] != NULL; }

static size_t cut_words(char *text, char **words) {
    size_t n = 0;
    for (char *word = text; word && n < WORDS; n++) {
        words[n] = word;
        word = strchr(word, SEPARATOR);
        if (word) *word++ = 0;
    }
    return n;
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
        char *said = np_entry_of(envp, word, length);
        bool preload = length == sizeof PRELOAD - 1 && !strncmp(word, PRELOAD, length),
             carries = said && !strchr(said, ',');
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
static bool rewrite(struct np_exec *call, struct room *room, char *text, char **words, char *joined) {
    char *script = NULL, *program = NULL, *argument = "", inner[NP_HEAD];
    char *const *argv = call->argv;
    np_resolve_self(call, room->self);
    int kind = np_kind_of(call->path, room->head);
    if (kind == '#') {
        script = (char *)call->path;
        if (!np_interpreter(room->head, &program, &argument) || np_kind_of(program, inner) != 'e') return false;
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
    words[0] = (char *)np_search(words[0], room->program);
    call->path = words[0];
    call->argv = words;
    return true;
}

/* The emulator itself must not load this library: its program gets it by the prefix. */
static void emulator_environment(char *const *envp, char **kept) {
    for (char *const *entry = envp; entry && *entry; entry++)
        if (strncmp(*entry, PRELOAD "=", sizeof PRELOAD)) *kept++ = *entry;
    for (int i = 0; i < CARRIED_COUNT; i++)
        if (carried[i] && !np_value_of(envp, CARRIED[i])) *kept++ = carried[i];
    *kept = NULL;
}

static const char *prefix_of(char *const *envp) {
    const char *prefix = np_value_of(envp, CARRIED[0]);
    if (!prefix && carried[0]) prefix = carried[0] + strlen(CARRIED[0]) + 1;
    return prefix && *prefix ? prefix : NULL;
}

static size_t arrays(const struct np_exec *call) {
    return np_count(call->argv) + EXTRA + np_count(call->envp) + CARRIED_COUNT + 1;
}

/* Where system calls are restricted it is not known what would start with this library: neither is it of use there. */
static bool harmed(const struct np_exec *call, const char *preload) {
    return preload && (np_sandboxed() || np_fit_of(call->path) == NP_FOREIGN);
}

size_t np_emulated_room(struct np_exec *call) {
    const char *prefix = prefix_of(call->envp), *own = np_value_of(call->envp, PRELOAD);
    if (!prefix && !harmed(call, own)) return 0;
    if (prefix && !np_sandboxed() && access(call->path, X_OK)) return 0; /* it may point to nowhere */
    if (!prefix) return (np_count(call->envp) + 1) * sizeof(char *) + sizeof PRELOAD + strlen(own) + 1;
    return sizeof(struct room) + arrays(call) * sizeof(char *) + 2 * strlen(prefix) + (own ? strlen(own) : 0) + 3;
}

/* Recorded as it is: a program that would not start with this library is started without. */
static void leave_out(struct np_exec *call, char **kept) {
    size_t count = np_count(call->envp);
    char *text = (char *)(kept + count + 1);
    for (size_t i = 0; i <= count; i++) kept[i] = call->envp[i];
    for (size_t i = 0; i < count; i++) {
        if (strncmp(kept[i], PRELOAD "=", sizeof PRELOAD)) continue;
        np_preload_without_us(kept[i] + sizeof PRELOAD, stpcpy(text, PRELOAD "="));
        kept[i] = text;
        break;
    }
    call->envp = kept;
}

void np_emulated_change(struct np_exec *call, void *given) {
    struct room *room = given;
    const char *prefix = prefix_of(call->envp);
    if (!prefix || !is_here(prefix)) {
        leave_out(call, given);
        return;
    }
    char **words = room->rest, **kept = words + np_count(call->argv) + EXTRA;
    char *text = (char *)(room->rest + arrays(call)), *joined = text + strlen(prefix) + 1;
    strcpy(text, prefix);
    emulator_environment(call->envp, kept);
    if (rewrite(call, room, text, words, joined)) call->envp = kept;
}
