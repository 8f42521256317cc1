/* Writes an area in calls that end in unusual ways; each of six rows of 64 KiB is written in one chain of calls. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROW (64 << 10)
#define APART __attribute__((noinline, noclone))

static volatile char area[6][ROW];
static jmp_buf back;

APART void writes(int row) {
    for (int i = 0; i < ROW; i++) area[row][i] = (char)i;
}

APART void plain(int row) {
    writes(row);
    area[row][0] = 1;
}

APART void falls(int depth) {
    if (depth == 0) longjmp(back, 1);
    falls(depth - 1);
    area[0][0] = 1;
}

APART void jumps(void) {
    if (!setjmp(back)) falls(20);
    plain(1);
    area[0][0] = 1;
}

APART void handler(int number) {
    (void)number;
    plain(2);
    area[0][0] = 1;
}

APART void deep(int depth) {
    if (depth) deep(depth - 1);
    else plain(3);
    area[0][0] = 1;
}

APART void *thread(void *unused) {
    plain(4);
    area[0][0] = 1;
    return unused;
}

APART void forks(void) {
    int child = fork();
    if (child == 0) {
        plain(5);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    area[0][0] = 1;
}

int main(void) {
    pthread_t made;
    plain(0);
    jumps();
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    deep(300);
    pthread_create(&made, NULL, thread, NULL);
    pthread_join(made, NULL);
    forks();
    plain(0);
    return 0;
}
