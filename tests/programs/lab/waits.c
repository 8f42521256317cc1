/* Looks at a flag as one waits for it, then works with a pause now and then: waits LOOKS ROUNDS */
#include <stdlib.h>

enum { WORK = 20 };

int main(int argc, char **argv) {
    static volatile int flag, data[WORK];
    long looks = argc > 1 ? atol(argv[1]) : 0, rounds = argc > 2 ? atol(argv[2]) : 0;
    for (long look = 0; look < looks && !flag; look++) __builtin_ia32_pause();
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < WORK; i++) data[i]++;
        __builtin_ia32_pause();
    }
    return 0;
}
