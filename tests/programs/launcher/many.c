/* COUNT threads that each live for an instant, a few at a time; prints the sum of what they returned. With a second
 * argument it stays until its input ends. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

enum { TOGETHER = 8 };

static void *instant(void *number) { return number; }

static int instant_c11(void *number) { return (int)(long)number; }

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1000;
    long sum = 0;
    for (int done = 0; done < count; done += TOGETHER) {
        pthread_t made[TOGETHER];
        int now = count - done < TOGETHER ? count - done : TOGETHER;
        for (long i = 0; i < now; i++) pthread_create(&made[i], NULL, instant, (void *)(done + i));
        for (int i = 0; i < now; i++) {
            void *result;
            pthread_join(made[i], &result);
            sum += (long)result;
        }
    }
    thrd_t last;
    int code = 0;
    thrd_create(&last, instant_c11, (void *)7l);
    thrd_join(last, &code);
    printf("%ld %d\n", sum, code);
    fflush(stdout);
    while (argc > 2 && getchar() != EOF) {}
    return 0;
}
