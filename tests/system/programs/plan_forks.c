/* A parent forks two children, one of which forks again; each works on a block of its own with two threads. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1 << 17 };
static double *block;

static void *work(void *half)
{
    volatile double *mine = block + (half ? N / 2 : 0);
    for (int turn = 0; turn < 10; turn++)
        for (int i = 0; i < N / 2; i++)
            mine[i] = mine[i] * .5 + turn;
    return NULL;
}

static void both(void)
{
    block = calloc(N, sizeof *block);
    pthread_t other;
    pthread_create(&other, NULL, work, block);
    work(NULL);
    pthread_join(other, NULL);
    free(block);
}

static void child(int deeper)
{
    if (fork() != 0)
        return;
    if (deeper)
        child(0);
    both();
    while (wait(NULL) > 0) {}
    _exit(0);
}

int main(void)
{
    child(1);
    child(0);
    both();
    while (wait(NULL) > 0) {}
    return 0;
}
