/* The options that the recorder gives the plugin. */
#include "emulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct em_options em_options = {.period = 1, .turn = 1000, .seed = 1, .cached = true, .fair = true, .inclusive = true};

/* `NUMBER:NUMBER:…`, one a cpu; how many, 0 when it is none. */
static uint32_t read_numbers(const char *text, uint32_t **numbers) {
    uint32_t count = 0;
    *numbers = calloc(strlen(text) / 2 + 1, sizeof **numbers);
    if (*numbers == NULL) return 0;
    for (char *end; *text; text = *end ? end + 1 : end) {
        uint32_t number = (uint32_t)strtoul(text, &end, 10);
        if (end == text || number >= 0x7fff) return 0;
        (*numbers)[count++] = number;
    }
    return count;
}

/* Which L3s there are, and their nodes; without a list of them, one a node. */
static bool settle_domains(uint32_t listed) {
    if (em_options.cpu_domains == NULL) em_options.cpu_domains = em_options.cpu_nodes, listed = em_options.cpus;
    if (em_options.cpus == 0 || listed != em_options.cpus) return false;
    for (uint32_t i = 0; i < em_options.cpus; i++)
        if (em_options.cpu_domains[i] >= em_options.domains) em_options.domains = em_options.cpu_domains[i] + 1;
    em_options.domain_nodes = calloc(em_options.domains, sizeof *em_options.domain_nodes);
    for (uint32_t i = 0; em_options.domain_nodes && i < em_options.cpus; i++)
        em_options.domain_nodes[em_options.cpu_domains[i]] = em_options.cpu_nodes[i];
    return em_options.domain_nodes;
}

static bool read_cache(const char *text, uint32_t *sets, uint32_t *ways) {
    return sscanf(text, "%u:%u", sets, ways) == 2 && *sets > 0 && !(*sets & (*sets - 1)) && *ways > 0 && *ways <= 32;
}

static uint32_t domains_listed;

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
    if (!strcmp(text, "cpus")) return (em_options.cpus = read_numbers(value, &em_options.cpu_nodes)) > 0;
    if (!strcmp(text, "domains")) return (domains_listed = read_numbers(value, &em_options.cpu_domains)) > 0;
    if (!strcmp(text, "l3_inclusive")) return em_options.inclusive = !strcmp(value, "yes"), true;
    if (!strcmp(text, "l1")) return read_cache(value, &em_options.l1_sets, &em_options.l1_ways);
    if (!strcmp(text, "l2")) return read_cache(value, &em_options.l2_sets, &em_options.l2_ways);
    return !strcmp(text, "l3") && read_cache(value, &em_options.l3_sets, &em_options.l3_ways);
}

bool em_options_read(int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        if (!read_option(argv[i])) {
            fprintf(stderr, "numaplan: emulation option '%s' is not valid\n", argv[i]);
            return false;
        }
    if (!settle_domains(domains_listed)) {
        fprintf(stderr, "numaplan: emulation options 'cpus' and 'domains' do not fit\n");
        return false;
    }
    while (1u << em_options.l1_shift < em_options.l1_ways) em_options.l1_shift++;
    return true;
}
