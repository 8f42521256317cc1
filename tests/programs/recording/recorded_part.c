/* Work in three areas at known addresses, of which a recording is to keep the second.
 *
 * marks: the middle is marked, twice; two threads and a forked child work in it. told: the middle lasts until there is
 * something to read; the program's own SIGUSR2 comes first. What it prints at the end: how many of these came.
 */
#include <numaplan.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 64, THREADS = 2 };
static const uintptr_t BASE = 0x200000000000, AREA = 1 << 20;
static volatile sig_atomic_t came;

static volatile char *area(int number) {
    void *made = mmap((void *)(BASE + (uintptr_t)number * AREA), PAGES * PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (made == MAP_FAILED) _exit(9);
    madvise(made, PAGES * PAGE, MADV_NOHUGEPAGE);
    return made;
}

static void touch(volatile char *memory) {
    for (int page = 0; page < PAGES; page++) memory[page * PAGE] = 1;
}

static void *work(void *memory) {
    touch(memory);
    return NULL;
}

static void count(int number) { came += number == SIGUSR2; }

static int marks(void) {
    volatile char *early = area(0), *shared = area(1), *late = area(2), *again = area(3), *child = area(4);
    pthread_t threads[THREADS];
    touch(early);
    if (numaplan_begin() != 0) return 3;
    numaplan_begin();
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)shared);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    numaplan_end();
    if (fork() == 0) {
        touch(child);
        _exit(0);
    }
    wait(NULL);
    numaplan_end();
    numaplan_end(); /* one too many */
    touch(late);
    numaplan_begin();
    touch(again);
    numaplan_end();
    touch(area(5));
    return 0;
}

static int told(void) {
    volatile char *early = area(0), *middle = area(1);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    signal(SIGUSR2, count);
    raise(SIGUSR2);
    touch(early);
    if (write(1, "ready\n", 6) != 6) return 3;
    do {
        touch(middle);
        madvise((void *)middle, PAGES * PAGE, MADV_DONTNEED);
    } while (poll(&input, 1, 0) == 0);
    touch(middle);
    char line[64];
    if (read(0, line, sizeof line) <= 0) return 4;
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    int code = !strcmp(argv[1], "marks") ? marks() : told();
    printf("%d\n", (int)came);
    return code;
}
