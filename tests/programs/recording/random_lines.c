/* Loads and stores at random among some lines at BASE. usage: random_lines SEED LINES ACCESSES */
#include <stdlib.h>
#include <sys/mman.h>

#define BASE 0x100000000000

int main(int argc, char **argv) {
    unsigned long state = argc > 1 ? strtoul(argv[1], NULL, 10) : 1, lines = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    long accesses = argc > 3 ? atol(argv[3]) : 0;
    volatile char *area = mmap((void *)BASE, lines * 64, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (area != (void *)BASE) return 99;
    for (long i = 0; i < accesses; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        volatile char *place = area + (state >> 33) % lines * 64;
        if (state >> 63) *place = 1;
        else (void)*place;
    }
    return 0;
}
