/* What exec starts. A hook may change it before it does (hooks.h); what such hooks need is here.
 *
 * All of it may run in the child of a vfork, in its parent's memory: only the stack is written.
 */
#ifndef NUMAPLAN_EXEC_H
#define NUMAPLAN_EXEC_H

#include "hooks.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#pragma GCC visibility push(hidden)

enum { NP_HEAD = 256 };

static inline size_t np_count(char *const *list) {
    size_t n = 0;
    while (list && list[n]) n++;
    return n;
}

/* NAME=VALUE in a list; NULL when it is not there. */
static inline char *np_entry_of(char *const *envp, const char *name, size_t length) {
    for (; envp && *envp; envp++)
        if (!strncmp(*envp, name, length) && (*envp)[length] == '=') return *envp;
    return NULL;
}

static inline const char *np_value_of(char *const *envp, const char *name) {
    size_t length = strlen(name);
    const char *entry = np_entry_of(envp, name, length);
    return entry ? entry + length + 1 : NULL;
}

/* The file that a name without a slash means by PATH; the name itself when there is none. found: NP_PATH bytes. */
const char *np_search(const char *file, char *found);
/* To who runs in our place, /proc/self/exe would be itself. self: NP_PATH bytes. */
void np_resolve_self(struct np_exec *call, char *self);

/* 'e': a 64-bit program for this processor, '3': a 32-bit one, '#': a script, 0: neither, left to the kernel. */
int np_kind_of(const char *path, char head[NP_HEAD]);
/* The interpreter and its one argument, cut out of a script's first line. */
bool np_interpreter(char head[NP_HEAD], char **program, char **argument);

/* ---- fits.c ---- */

enum np_fit {
    NP_FITS,       /* this library can be loaded into it, or nobody knows */
    NP_CLOSED,     /* static: it loads nothing */
    NP_GO,         /* makes its threads without libc */
    NP_PRIVILEGED, /* gains privileges: the loader leaves us out */
    NP_FOREIGN,    /* another C library or word size: it would not start with us */
};
enum np_fit np_fit_of(const char *path);
/* This library in LD_PRELOAD's value, and how long its path is; NULL: it is not there. */
const char *np_preload_of_us(const char *list, size_t *length);
/* LD_PRELOAD's value without this library. to: as much room as list takes. */
char *np_preload_without_us(const char *list, char *to);

#pragma GCC visibility pop
#endif
