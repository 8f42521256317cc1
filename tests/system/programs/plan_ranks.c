/* Ranks of two threads: each works on its half of the rank's block, then neighbours exchange a part of it. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

enum { N = 1 << 17, PART = 4096 };
static double *block;

static void *work(void *half)
{
    volatile double *mine = block + (half ? N / 2 : 0);
    for (int turn = 0; turn < 10; turn++)
        for (int i = 0; i < N / 2; i++)
            mine[i] = mine[i] * .5 + turn;
    return NULL;
}

int main(int argc, char **argv)
{
    int rank, ranks, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    block = calloc(N, sizeof *block);
    pthread_t other;
    pthread_create(&other, NULL, work, block);
    work(NULL);
    pthread_join(other, NULL);
    MPI_Sendrecv_replace(block, PART, MPI_DOUBLE, (rank + 1) % ranks, 0, (rank + ranks - 1) % ranks, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(block);
    MPI_Finalize();
    return 0;
}
