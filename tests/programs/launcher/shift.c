/* Blocks in a fixed order, but for those of another kind that an argument puts before them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    for (int i = 0; argc > 1 && i < atoi(argv[1]); i++) memset(malloc(77777), 1, 77777);
    for (int i = 0; i < 4; i++) {
        size_t bytes = 100000 + 10000u * (unsigned)i;
        memset(malloc(bytes), 1, bytes);
    }
    for (int i = 0; i < 3; i++) memset(calloc(2, 90000), 1, 180000);
    return 0;
}
