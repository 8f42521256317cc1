#include "cluster.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **words) {
    const char *slash = strrchr(words[0], '/'), *name = slash ? slash + 1 : words[0];
    if (!strcmp(name, "nlab-rank")) return rank_start(words + 1);
    if (!strcmp(name, "nlab-serve")) return shell_serve();
    if (!strcmp(name, "nlab-shell")) return shell_call(count - 1, words + 1);
    fprintf(stderr, "nlab: %s: no such part\n", name);
    return 2;
}
