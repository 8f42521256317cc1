/* Threads that make the next one, so many one of the other, and at last one of the first: grows COUNT */
#include <pthread.h>
#include <stdlib.h>

static long last;

static void *grow(void *number) {
    pthread_t next;
    if ((long)number < last && pthread_create(&next, NULL, grow, (void *)((long)number + 1)) == 0)
        pthread_join(next, NULL);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t first;
    last = argc > 1 ? atol(argv[1]) : 1;
    for (int times = 0; times < 2; times++, last = 1)
        if (pthread_create(&first, NULL, grow, (void *)1L) || pthread_join(first, NULL)) return 1;
    return 0;
}
