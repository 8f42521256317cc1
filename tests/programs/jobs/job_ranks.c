/* A rank of three threads: each says where it may run, by what the kernel has of it, and ranks pass a number round.
 *
 *     job_ranks [FAR [NUMBERS]]: to the rank that is so far away (1), so many times (1)
 *
 * The threads are created before MPI's own, so that their paths are the same with every MPI. Lines: "thread RANK TID
 * CPUS", "rank RANK HOST GOT".
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3, BLOCK = 1 << 20, LINE = 256 };

static char lines[THREADS][LINE];
static pthread_barrier_t all;

static void look(long number) {
    char line[LINE], file[LINE];
    snprintf(file, sizeof file, "/proc/self/task/%d/status", gettid());
    FILE *status = fopen(file, "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "Cpus_allowed_list: %255s", file) == 1)
            snprintf(lines[number], LINE, "%d %.200s", gettid(), file);
    if (status) fclose(status);
}

static void *work(void *argument) {
    pthread_barrier_wait(&all); /* all live at once */
    char *block = malloc(BLOCK);
    memset(block, 1, BLOCK);
    look((long)argument);
    free(block);
    pthread_barrier_wait(&all);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS - 1];
    int rank, ranks, level, far = argc > 1 ? atoi(argv[1]) : 1, numbers = argc > 2 ? atoi(argv[2]) : 1;
    int *sent = calloc((size_t)numbers, sizeof *sent), *got = calloc((size_t)numbers, sizeof *got);
    char host[LINE] = "";
    pthread_barrier_init(&all, NULL, THREADS);
    for (long i = 1; i < THREADS; i++) pthread_create(&threads[i - 1], NULL, work, (void *)i);
    work((void *)0L);
    for (int i = 1; i < THREADS; i++) pthread_join(threads[i - 1], NULL);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < numbers; i++) sent[i] = rank;
    MPI_Sendrecv(sent, numbers, MPI_INT, (rank + far) % ranks, 0, got, numbers, MPI_INT, (rank + ranks - far) % ranks,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    gethostname(host, sizeof host - 1);
    for (int i = 0; i < THREADS; i++) printf("thread %d %s\n", rank, lines[i]);
    printf("rank %d %s %d\n", rank, host, got[numbers - 1]);
    fflush(stdout);
    free(sent);
    free(got);
    MPI_Finalize();
    return 0;
}
