/* The table of live blocks under several threads at once: each adds and removes its own addresses, none may be lost,
 * and none of another thread's may be found.
 */
#include "preload.h"

#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 300, BLOCKS = 200 };

static void *hammer(void *argument) {
    uintptr_t base = ((uintptr_t)argument + 1) << 32, wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (uintptr_t i = 0; i < BLOCKS; i++) wrong += !np_live_add(base + i * 65536);
        for (uintptr_t i = 0; i < BLOCKS; i++) wrong += np_live_remove(base + i * 65536 + 16);
        for (uintptr_t i = 0; i < BLOCKS; i++) wrong += !np_live_remove(base + i * 65536);
        for (uintptr_t i = 0; i < BLOCKS; i++) wrong += np_live_remove(base + i * 65536);
    }
    return (void *)wrong;
}

int main(void) {
    pthread_t threads[THREADS];
    uintptr_t wrong = 0;
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, hammer, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (uintptr_t)result;
    }
    printf("%lu wrong\n", (unsigned long)wrong);
    return wrong != 0;
}
