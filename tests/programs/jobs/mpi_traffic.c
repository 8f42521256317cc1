/* Ranks that send each other what is known beforehand: letters of argv[1] name it, and a number says how many doubles
 * are reduced; the test has the same sums.
 *
 * Every rank sends by another call where that is possible, so that each of them is counted.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 10, BLOCK = 1000, TAG = 7 };

static int rank, ranks;
static char *out, *in;

static int to(int distance) { return (rank + distance + ranks) % ranks; }

/* ROUNDS messages of BLOCK bytes to the next rank, by each way of sending in turn. */
static void ring(void) {
    MPI_Request sent, received;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Irecv(in, BLOCK, MPI_BYTE, to(-1), TAG, MPI_COMM_WORLD, &received);
        switch (round % 5) {
        case 0: MPI_Send(out, BLOCK, MPI_BYTE, to(1), TAG, MPI_COMM_WORLD); break;
        case 1: MPI_Ssend(out, BLOCK / 8, MPI_DOUBLE, to(1), TAG, MPI_COMM_WORLD); break;
        case 2:
            MPI_Isend(out, BLOCK / 4, MPI_INT, to(1), TAG, MPI_COMM_WORLD, &sent);
            MPI_Wait(&sent, MPI_STATUS_IGNORE);
            break;
        case 3:
            MPI_Issend(out, BLOCK, MPI_CHAR, to(1), TAG, MPI_COMM_WORLD, &sent);
            MPI_Wait(&sent, MPI_STATUS_IGNORE);
            break;
        default:
            MPI_Sendrecv(out, BLOCK, MPI_BYTE, to(1), TAG, NULL, 0, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
        MPI_Wait(&received, MPI_STATUS_IGNORE);
    }
}

/* The same by requests that are made once. */
static void persistent(void) {
    MPI_Request requests[2];
    MPI_Send_init(out, BLOCK, MPI_BYTE, to(1), TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(in, BLOCK, MPI_BYTE, to(-1), TAG, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2) MPI_Startall(2, requests);
        else MPI_Start(&requests[0]), MPI_Start(&requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* A grid whose width is 2, without wrapping: rows of doubles up and down, columns by a derived type to the sides. */
static void halo(void) {
    int size[2] = {ranks / 2, 2}, wraps[2] = {0, 0}, up, down, left, right;
    MPI_Comm grid;
    MPI_Datatype column;
    MPI_Cart_create(MPI_COMM_WORLD, 2, size, wraps, 0, &grid);
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    MPI_Type_vector(16, 1, 32, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Sendrecv(out, 32, MPI_DOUBLE, up, TAG, in, 32, MPI_DOUBLE, down, TAG, grid, MPI_STATUS_IGNORE);
        MPI_Sendrecv(out, 32, MPI_DOUBLE, down, TAG, in, 32, MPI_DOUBLE, up, TAG, grid, MPI_STATUS_IGNORE);
        MPI_Sendrecv(out, 1, column, left, TAG, in, 1, column, right, TAG, grid, MPI_STATUS_IGNORE);
        MPI_Sendrecv(out, 1, column, right, TAG, in, 1, column, left, TAG, grid, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&column);
    MPI_Comm_free(&grid);
}

/* From each to each, by messages of its own; in a communicator that has the ranks the other way round. */
static void all_to_all(void) {
    MPI_Comm reversed;
    MPI_Request *requests = malloc(2 * (size_t)ranks * sizeof *requests);
    MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, &reversed);
    for (int peer = 0; peer < ranks; peer++) {
        int world = ranks - 1 - peer;
        MPI_Irecv(in + (size_t)peer * BLOCK, BLOCK, MPI_BYTE, peer, TAG, reversed, &requests[peer]);
        MPI_Isend(out, 100 + 10 * rank + world, MPI_BYTE, peer, TAG, reversed, &requests[ranks + peer]);
    }
    MPI_Waitall(2 * ranks, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&reversed);
    free(requests);
}

/* Rank 0 hands out ROUNDS tasks to each in turn, and takes an answer from whoever has one. */
static void master_and_workers(void) {
    if (rank) {
        for (int task = 0; task < ROUNDS; task++) {
            MPI_Recv(in, BLOCK, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, 8, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
        return;
    }
    for (int task = 0; task < ROUNDS * (ranks - 1); task++) {
        MPI_Send(out, BLOCK, MPI_BYTE, 1 + task % (ranks - 1), TAG, MPI_COMM_WORLD);
        MPI_Recv(in, BLOCK, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void allreduce(int doubles) {
    for (int round = 0; round < ROUNDS; round++) MPI_Allreduce(out, in, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void one_sided(void) {
    MPI_Win window;
    MPI_Win_create(in, 4 * BLOCK, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(out, BLOCK, MPI_BYTE, to(1), 0, BLOCK, MPI_BYTE, window);
    MPI_Get(out + BLOCK, 500, MPI_BYTE, to(1), 2 * BLOCK, 500, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    out = calloc(1024, BLOCK);
    in = calloc(1024, BLOCK);
    const char *traffic = argc > 1 ? argv[1] : "r", *end = argc > 2 ? argv[2] : "";
    for (; *traffic; traffic++) switch (*traffic) {
        case 'r': ring(); break;
        case 'h': halo(); break;
        case 'a': all_to_all(); break;
        case 'w': master_and_workers(); break;
        case 'p': persistent(); break;
        case 'o': one_sided(); break;
        default: allreduce(atoi(traffic)); traffic += strlen(traffic) - 1;
        }
    if (*end) MPI_Barrier(MPI_COMM_WORLD); /* all have begun, and sent what they send */
    if (!strcmp(end, "abort") && rank == 1) MPI_Abort(MPI_COMM_WORLD, 3);
    if (!strcmp(end, "exit")) exit(0);
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
