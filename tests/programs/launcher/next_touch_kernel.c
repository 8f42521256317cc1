/* Pages that next-touch moves, with a kernel of ours: all are on node 0, and a thread on node 0 touches the even ones, another
 * on node 1 the others.
 *
 *     next_touch_kernel busy    a page that is moved at the third try only, and a call ends with the first that it cannot move
 *     next_touch_kernel huge    a huge page that is split only while no part of it was touched, else moved as a whole
 *
 * Prints how many pages are on the wrong node, and how many the library says could not be moved.
 */
#include "next_touch.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 512, HUGE_PAGE = PAGES * PAGE, TRIES = 3 };
static char *memory;
static int node_of[PAGES], tries;
static unsigned here;
static bool busy, huge, opened;

static size_t number_of(void *page) { return (size_t)((char *)page - memory) / PAGE; }

/* 0: moved. */
static int move(size_t page, int node) {
    if (busy && page == 1 && ++tries < TRIES) return -EBUSY;
    for (size_t i = 0; i < PAGES; i++)
        if (huge || i == page) node_of[i] = node;
    return 0;
}

static long move_pages(unsigned long count, void **pages, const int *nodes, int *status) {
    for (unsigned long i = 0; i < count; i++) {
        size_t page = number_of(pages[i]);
        if (nodes && node_of[page] != nodes[i] && (status[i] = move(page, nodes[i]))) return (long)(count - i);
        status[i] = node_of[page];
    }
    return 0;
}

long syscall(long number, ...) {
    long (*real)(long, ...);
    *(void **)(&real) = dlsym(RTLD_NEXT, "syscall");
    __builtin_va_list list;
    __builtin_va_start(list, number);
    long a[6];
    for (int i = 0; i < 6; i++) a[i] = __builtin_va_arg(list, long);
    __builtin_va_end(list);
    if (number == SYS_move_pages) return move_pages((unsigned long)a[1], (void **)a[2], (int *)a[3], (int *)a[4]);
    if (number == SYS_madvise) huge = huge && (opened || a[1] >= HUGE_PAGE);
    if (number == SYS_mprotect && a[2] != PROT_NONE) opened = true;
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int getcpu(unsigned *cpu, unsigned *node) {
    *cpu = *node = here;
    return 0;
}

int main(int count, char **words) {
    if (count != 2) return 9;
    busy = !strcmp(words[1], "busy"), huge = !busy;
    memory = aligned_alloc(HUGE_PAGE, HUGE_PAGE);
    if (nt_mark((uintptr_t)memory, (uintptr_t)memory + HUGE_PAGE, PAGE, PROT_READ | PROT_WRITE)) return 8;
    size_t wrong = 0;
    for (size_t i = 0; i < PAGES; i++) {
        here = i % 2;
        nt_resolve((uintptr_t)memory + i * PAGE);
    }
    for (size_t i = 0; i < PAGES; i++) wrong += node_of[i] != (int)(i % 2);
    printf("%zu wrong, %lu stayed\n", wrong, (unsigned long)nt_counts.stayed);
    return 0;
}
