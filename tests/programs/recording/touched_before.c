/* Four threads use a mapping each of PAGES pages, between marks. Who has filled them before, by the argument:
 * alone: the main thread, before it makes them; later: the main thread, while they wait; own: each its own. */
#define _GNU_SOURCE
#include <numaplan.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 4, PAGES = 256, PAGE = 4096 };

static pthread_barrier_t barrier;
static volatile char *memory[THREADS];
static char mode;

static void touch(int which) {
    for (int page = 0; page < PAGES; page++) memory[which][page * PAGE] += 1;
}

static void *work(void *number) {
    int me = (int)(intptr_t)number;
    if (mode == 'o') touch(me);
    pthread_barrier_wait(&barrier); /* all is filled, or main does it now */
    pthread_barrier_wait(&barrier); /* main has said that the work begins */
    for (int i = 0; i < 20; i++) touch(me);
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    mode = argc > 1 ? argv[1][0] : 'a';
    for (int i = 0; i < THREADS; i++) {
        void *made = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(made, PAGES * PAGE, MADV_NOHUGEPAGE); /* else one fault fills many pages */
        memory[i] = made;
    }
    if (mode == 'a')
        for (int i = 0; i < THREADS; i++) touch(i);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    pthread_barrier_wait(&barrier);
    if (mode == 'l')
        for (int i = 0; i < THREADS; i++) touch(i);
    numaplan_begin();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    numaplan_end();
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
