/* So many blocks of 64 KiB from one place, all of which live until the end; a few bytes of each are used. */
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 1 << 16 };

int main(int count, char **words) {
    long blocks = count > 1 ? atol(words[1]) : 1, made = 0;
    for (; made < blocks; made++) {
        volatile char *block = malloc(BYTES);
        if (!block) break;
        block[BYTES / 2] = 1;
    }
    printf("%ld\n", made);
    return made != blocks;
}
