/* Blocks that are given back before the next is taken, so that all lie at one address: block k has the k-th byte of
 * each of its first 1000 lines written.
 *
 * usage: reused_blocks BLOCKS
 */
#include <malloc.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long blocks = argc > 1 ? atol(argv[1]) : 1;
    mallopt(M_MMAP_THRESHOLD, 1 << 20); /* from the heap, not by mmap */
    for (long k = 0; k < blocks; k++) {
        volatile char *block = malloc(200000);
        char *line = (char *)(((unsigned long)block + 63) / 64 * 64);
        for (long i = 0; i < 1000; i++) ((volatile char *)line)[i * 64 + k % 64] = 1;
        free((void *)block);
    }
    return 0;
}
