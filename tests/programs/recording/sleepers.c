/* Threads that sleep in their system calls, and one that hardly does.
 *
 * sleepers ROUNDS: a thread sleeps so often, and gives another one a byte after each time, which waits for it, and then
 * waits for a third one by a condition. The main thread works meanwhile, in system calls that are over at once too, and
 * then waits for all.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int rounds, bytes[2], asked, answered;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

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
    for (int round = 0; round < rounds; round++) {
        if (poll(&wanted, 1, -1) != 1 || read(bytes[0], &byte, 1) != 1) abort();
        pthread_mutex_lock(&lock);
        asked++;
        pthread_cond_broadcast(&changed);
        while (answered < asked) pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *answerer(void *unused) {
    pthread_mutex_lock(&lock);
    while (answered < rounds) {
        while (answered == asked) pthread_cond_wait(&changed, &lock);
        answered++;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t threads[3];
    if (pipe(bytes)) abort();
    pthread_create(&threads[0], NULL, sleeper, NULL);
    pthread_create(&threads[1], NULL, waiter, NULL);
    pthread_create(&threads[2], NULL, answerer, NULL);
    for (volatile int work = 0; work < 100000; work++)
        if (work % 100 == 0) getppid();
    for (int number = 0; number < 3; number++) pthread_join(threads[number], NULL);
    return 0;
}
