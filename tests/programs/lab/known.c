/* Makes a known number of 8-byte loads and stores to memory bound to a node, from a cpu it binds itself to.
 *
 *     known CPU NODE ACCESSES
 *
 * The memory is written once before, page by page, so that no load meets the kernel's shared zero page.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BYTES = 4 << 20, WORDS = BYTES / 8, PAGE_WORDS = 512, STRIDE = 61, MPOL_BIND = 2 };

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(argv[1]), &cpus);
    unsigned long nodes = 1UL << atoi(argv[2]);
    long accesses = atol(argv[3]);
    volatile uint64_t *words = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED || sched_setaffinity(0, sizeof cpus, &cpus) ||
        syscall(SYS_mbind, words, BYTES, MPOL_BIND, &nodes, 64UL, 0)) {
        perror("known");
        return 1;
    }
    for (long i = 0; i < WORDS; i += PAGE_WORDS) words[i] = 1;
    for (long i = 0, at = 0; i < accesses; i += 2, at = (at + STRIDE) % WORDS) {
        words[at] = (uint64_t)i;
        (void)words[(at + WORDS / 2) % WORDS];
    }
    return 0;
}
