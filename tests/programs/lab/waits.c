/* Looks at a flag as one waits for it, with a pause, and at it and queues, with sched_yield; then works with a pause now
 * and then: waits LOOKS YIELDS ROUNDS */
#include <sched.h>
#include <stdlib.h>

enum { WORK = 9, QUEUES = 8 };

int main(int argc, char **argv) {
    static volatile int flag, data[WORK];
    long looks = argc > 1 ? atol(argv[1]) : 0, yields = argc > 2 ? atol(argv[2]) : 0;
    long rounds = argc > 3 ? atol(argv[3]) : 0;
    for (long look = 0; look < looks && !flag; look++) __builtin_ia32_pause();
    for (long look = 0; look < yields && !flag; look++) {
        for (int queue = 0; queue < QUEUES; queue++)
            if (data[queue]) return 1;
        sched_yield();
    }
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < WORK; i++) data[i]++;
        __builtin_ia32_pause();
    }
    return 0;
}
