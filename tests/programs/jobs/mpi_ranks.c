/* Ranks of two threads: each works on its half of the rank's block, then neighbours exchange a part of it. */
#include "work.h"

#include <mpi.h>

enum { PART = 4096 };

int main(int argc, char **argv) {
    int rank, ranks, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double *mine = both();
    MPI_Sendrecv_replace(mine, PART, MPI_DOUBLE, (rank + 1) % ranks, 0, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    free(mine);
    MPI_Finalize();
    return 0;
}
