/* An MPI job that is numbered against its launcher: each rank exchanges with those two before and after it.
 *
 *     mpicc -O2 -pthread every_second.c -o every_second
 *     mpirun -n 8 ./every_second [steps]
 *
 * Launchers put neighbours on one host, and every message goes to another. Each rank works with two threads on a block.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, CELLS = 1 << 17, EDGE = 4096, FAR = 2 };

static double *cells;
static int steps;
static pthread_barrier_t turn; /* the first thread exchanges while the other waits */

static void relax(int thread) {
    double *own = cells + thread * CELLS;
    for (int i = 1; i < CELLS - 1; i++) own[i] = (own[i - 1] + own[i] + own[i + 1]) / 3;
}

static void exchange(int rank, int ranks) {
    int before = (rank + ranks - FAR) % ranks, after = (rank + FAR) % ranks;
    MPI_Sendrecv_replace(cells, EDGE, MPI_DOUBLE, after, 0, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(cells + 2 * CELLS - EDGE, EDGE, MPI_DOUBLE, before, 1, after, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
}

static void *second(void *unused) {
    for (int i = 0; i < steps; i++) {
        relax(1);
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
    }
    return unused;
}

int main(int argc, char **argv) {
    int rank, ranks, level;
    double sum = 0, all;
    pthread_t thread;
    steps = argc > 1 ? atoi(argv[1]) : 20;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    cells = malloc(2 * CELLS * sizeof *cells);
    for (int i = 0; i < 2 * CELLS; i++) cells[i] = rank + i % 7;
    pthread_barrier_init(&turn, NULL, THREADS);
    pthread_create(&thread, NULL, second, NULL);
    for (int i = 0; i < steps; i++) {
        relax(0);
        pthread_barrier_wait(&turn);
        exchange(rank, ranks);
        pthread_barrier_wait(&turn);
    }
    pthread_join(thread, NULL);
    for (int i = 0; i < 2 * CELLS; i++) sum += cells[i];
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("sum %.3f\n", all);
    free(cells);
    MPI_Finalize();
    return 0;
}
