/* What a model is of, as its user is told in words: `cpus`, `domains`, `l3_inclusive`, `l1`, `l2`, `l3`. */
#include "caches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct caches_options caches = {.inclusive = true};

static uint32_t domains_listed;

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

bool caches_settle(void) {
    if (caches.cpu_domains == NULL) caches.cpu_domains = caches.cpu_nodes, domains_listed = caches.cpus;
    if (caches.cpus == 0 || domains_listed != caches.cpus) return false;
    for (uint32_t i = 0; i < caches.cpus; i++)
        if (caches.cpu_domains[i] >= caches.domains) caches.domains = caches.cpu_domains[i] + 1;
    caches.domain_nodes = calloc(caches.domains, sizeof *caches.domain_nodes);
    for (uint32_t i = 0; caches.domain_nodes && i < caches.cpus; i++)
        caches.domain_nodes[caches.cpu_domains[i]] = caches.cpu_nodes[i];
    return caches.domain_nodes;
}

static bool read_cache(const char *text, struct cache_shape *c) {
    return sscanf(text, "%u:%u", &c->sets, &c->ways) == 2 && c->sets > 0 && !(c->sets & (c->sets - 1)) && c->ways > 0 &&
           c->ways <= 32;
}

bool caches_option(const char *name, const char *value) {
    if (!strcmp(name, "cpus")) return (caches.cpus = read_numbers(value, &caches.cpu_nodes)) > 0;
    if (!strcmp(name, "domains")) return (domains_listed = read_numbers(value, &caches.cpu_domains)) > 0;
    if (!strcmp(name, "l3_inclusive")) return caches.inclusive = !strcmp(value, "yes"), true;
    if (!strcmp(name, "l1")) return read_cache(value, &caches.l1);
    if (!strcmp(name, "l2")) return read_cache(value, &caches.l2);
    return !strcmp(name, "l3") && read_cache(value, &caches.l3);
}
