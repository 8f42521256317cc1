/* Threads that sleep in their system calls, and one that hardly does.
 *
 * sleepers ROUNDS: a thread sleeps so often, and gives another one a byte after each time, which waits for it. The main
 * thread works meanwhile, in system calls that are over at once too, and then waits for both.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int rounds, bytes[2];

static void *sleeper(void *unused) {
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int round = 0; round < rounds; round++) {
        nanosleep(&moment, NULL);
        if (write(bytes[1], "", 1) != 1) abort();
    }
    return unused;
}

static void *waiter(void *unused) {
    char byte;
    struct pollfd wanted = {.fd = bytes[0], .events = POLLIN};
    for (int round = 0; round < rounds; round++)
        if (poll(&wanted, 1, -1) != 1 || read(bytes[0], &byte, 1) != 1) abort();
    return unused;
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t threads[2];
    if (pipe(bytes)) abort();
    pthread_create(&threads[0], NULL, sleeper, NULL);
    pthread_create(&threads[1], NULL, waiter, NULL);
    for (volatile int work = 0; work < 100000; work++)
        if (work % 100 == 0) getppid();
    for (int number = 0; number < 2; number++) pthread_join(threads[number], NULL);
    return 0;
}
