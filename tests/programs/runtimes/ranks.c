/* MPI: every rank makes a few threads. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *rest(void *unused) {
    usleep(300000);
    return unused;
}

int main(int argc, char **argv) {
    int given, rank, size;
    pthread_t threads[3];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, rest, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    int sum = 0;
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d of %d\n", sum, size);
    MPI_Finalize();
}
