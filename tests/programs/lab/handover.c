/* A child that answers its parent through shared memory, in turns, and works in memory of its own at the parent's
 * addresses. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS = 10, WORDS = 8192 };

static void take_turns(volatile long *shared, volatile long *own, int from, int to, int begins) {
    char turn = 0;
    for (int i = 0; i < TURNS; i++) {
        if ((i > 0 || !begins) && read(from, &turn, 1) != 1) _exit(1);
        for (long word = 0; word < WORDS; word++) shared[word] = shared[word] + 1;
        for (long word = 0; word < WORDS; word++) own[word] = own[word] + 1;
        if (write(to, &turn, 1) != 1) _exit(1);
    }
}

int main(void) {
    const size_t bytes = WORDS * sizeof(long);
    long *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), *own = malloc(bytes);
    int there[2], back[2], status = 0;
    if (shared == MAP_FAILED || !own || pipe(there) || pipe(back)) return 1;
    memset(own, 0, bytes);
    pid_t child = fork();
    if (child == 0) {
        take_turns(shared, own, there[0], back[1], 0);
        return shared[0] == 2 * TURNS ? 0 : 2;
    }
    take_turns(shared, own, back[0], there[1], 1);
    waitpid(child, &status, 0);
    return status != 0;
}
