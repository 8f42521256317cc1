/* Shared memory of System V; prints "bytes address" of what it attaches: one block that it detaches, and one that stays. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>

static void *attach(size_t bytes) {
    int id = shmget(IPC_PRIVATE, bytes, 0600 | IPC_CREAT);
    void *block = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    if (block == (void *)-1) return NULL;
    memset(block, 1, bytes);
    printf("%zu %zu\n", bytes, (size_t)(uintptr_t)block);
    return block;
}

int main(void) {
    void *gone = attach(1 << 20), *small = attach(4096), *stays = attach(300000);
    if (!gone || !small || !stays || shmdt(gone) || shmdt(small)) return 1;
    return shmdt(gone) == 0; /* nothing is there any more */
}
