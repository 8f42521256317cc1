/* Every command: starts numaplan-start beside it with its own name, which Python's start.py takes over.
 *
 * Python answers Ctrl-C with a traceback until somebody tells it how to: until then the signal waits. So does the one
 * that starts a recording, which would end us. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STARTS "numaplan-start"
enum { LACKING = 3 }; /* the exit code: docs/reference/commands.md */

static int fail(const char *name, const char *what) {
    fprintf(stderr, "%s: error: %s: %s — install numaplan again\n", name, what, strerror(errno));
    return LACKING;
}

/* As start.py has it. */
static bool waits_for_signal(int argc, char **argv) {
    bool found = false;
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) found = found || strcmp(argv[i], "--on-signal") == 0;
    return found && strcmp(argv[1], "record") == 0;
}

int main(int argc, char **argv) {
    sigset_t waits;
    sigemptyset(&waits);
    sigaddset(&waits, SIGINT);
    if (waits_for_signal(argc, argv)) sigaddset(&waits, SIGUSR2);
    sigprocmask(SIG_BLOCK, &waits, NULL);

    char self[PATH_MAX], starts[PATH_MAX + sizeof STARTS];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1); /* however it was found */
    if (length < 0) return fail("numaplan", "/proc/self/exe");
    self[length] = '\0';
    char *name = strrchr(self, '/') + 1;
    snprintf(starts, sizeof starts, "%.*s" STARTS, (int)(name - self), self);

    char **words = calloc((size_t)argc + 2, sizeof *words);
    if (words == NULL) return fail(name, "its words");
    words[0] = starts;
    words[1] = name;
    for (int i = 1; i < argc; i++) words[i + 1] = argv[i];
    execv(starts, words);
    return fail(name, starts);
}
