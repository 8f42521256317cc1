/* MPI: every rank makes a few threads, which live until the first rank's input ends. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *rest(void *unused) {
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return unused;
}

int main(int argc, char **argv) {
    int given, rank, size;
    pthread_t threads[3];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pthread_mutex_lock(&held);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, rest, NULL);
    while (rank == 0 && getchar() != EOF) {}
    MPI_Request all;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    for (int over = 0; !over; usleep(1000)) MPI_Test(&all, &over, MPI_STATUS_IGNORE); /* asleep, not spinning */
    pthread_mutex_unlock(&held);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    int sum = 0;
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d of %d\n", sum, size);
    MPI_Finalize();
}
