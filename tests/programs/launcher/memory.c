/* One large block of every kind; prints "kind bytes address" of each, in the order in which they are made. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static char table[1 << 20];
static int initialised[20000] = {1};

static void tell(const char *kind, size_t bytes, void *block) {
    memset(block, 1, bytes);
    printf("%s %zu %zu\n", kind, bytes, (size_t)(uintptr_t)block);
}

static void *in_thread(void *unused) {
    char *block = malloc(300000);
    tell("heap", 300000, block);
    return (void)unused, block;
}

int main(void) {
    void *aligned = NULL;
    tell("static", sizeof table, table);
    tell("static", sizeof initialised, initialised);
    tell("heap", 1 << 20, malloc(1 << 20));
    tell("heap", 400000, calloc(4, 100000));
    char *small = malloc(100);
    tell("heap", 70000, realloc(small, 70000));
    tell("heap", 80000, aligned_alloc(4096, 80000 / 4096 * 4096 + 4096) ? memalign(4096, 80000) : NULL);
    if (posix_memalign(&aligned, 4096, 90000) == 0) tell("heap", 90000, aligned);
    tell("heap", 110000, valloc(110000));
    tell("heap", 120000, reallocarray(NULL, 1200, 100));
    void *mapping = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    tell("mmap", 1 << 18, mapping);
    void *moved = mremap(mapping, 1 << 18, 1 << 20, MREMAP_MAYMOVE);
    tell("mmap", 1 << 20, moved);
    pthread_t thread;
    void *block = NULL;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, &block);
    free(block);
    munmap(moved, 1 << 20);
    free(malloc(65535));
    return 0;
}
