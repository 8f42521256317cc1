/* The options that the recorder gives the plugin. */
#include "emulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct em_options em_options = {.period = 1, .turn = 1000, .seed = 1, .cached = true, .fair = true};

static bool read_option(char *text) {
    char *value = strchr(text, '=');
    if (value == NULL) return false;
    *value++ = '\0';
    if (!strcmp(text, "dir"))
        return (size_t)snprintf(em_options.dir, sizeof em_options.dir, "%s", value) < sizeof em_options.dir;
    if (!strcmp(text, "period")) return (em_options.period = strtoull(value, NULL, 10)) > 0;
    if (!strcmp(text, "turn")) return (em_options.turn = strtoull(value, NULL, 10)) > 0;
    if (!strcmp(text, "seed")) return em_options.seed = strtoull(value, NULL, 10), true;
    if (!strcmp(text, "cache")) return em_options.cached = !strcmp(value, "on"), true;
    if (!strcmp(text, "schedule")) return em_options.fair = !strcmp(value, "fair"), true;
    if (!strcmp(text, "transfers")) return em_options.transfers = !strcmp(value, "on"), true;
    if (!strcmp(text, "page_use")) return em_options.uses = !strcmp(value, "on"), true;
    if (!strcmp(text, "calls")) return em_options.calls = !strcmp(value, "on"), true;
    if (!strcmp(text, "llc_own")) return em_options.llc_own = (unsigned)strtoul(value, NULL, 10), true;
    if (!strcmp(text, "runtime")) return em_options.runtime = !strcmp(value, "yes"), true;
    if (!strcmp(text, "skip")) return em_options.skip = strtoull(value, NULL, 10), true;
    if (!strcmp(text, "take")) return em_options.take = strtoull(value, NULL, 10), true;
    if (!strcmp(text, "part")) return em_options.part = !strcmp(value, "yes"), true;
    if (!strcmp(text, "marked")) return em_options.marked = !strcmp(value, "yes"), true;
    if (!strcmp(text, "shown")) return em_cpus_option(value);
    return reach_option(text, value) || caches_option(text, value);
}

bool em_options_read(int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        if (!read_option(argv[i])) {
            fprintf(stderr, "numaplan: emulation option '%s' is not valid\n", argv[i]);
            return false;
        }
    if (!caches_settle()) {
        fprintf(stderr, "numaplan: emulation options 'cpus' and 'domains' do not fit\n");
        return false;
    }
    if (!em_options.cached) em_options.transfers = false;
    if (!em_options.fair) em_options.uses = false; /* they have no lock */
    caches.locked = !em_options.fair; /* under the fair schedule, the turn is the lock */
    return true;
}
