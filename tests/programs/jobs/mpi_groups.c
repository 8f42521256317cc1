/* mpi_groups: even ranks and odd ranks are two groups, and each rank sends 1000 bytes to its partner in the other, by an
 * intercommunicator. With an argument that names this program, it also starts a second job and takes a byte from it.
 */
#include <mpi.h>

enum { SIZE = 1000 };

static void between_groups(void) {
    char sent[SIZE] = {0}, got[SIZE];
    int rank, place;
    MPI_Comm half, both;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &both);
    MPI_Comm_rank(half, &place);
    MPI_Sendrecv(sent, SIZE, MPI_CHAR, place, 0, got, SIZE, MPI_CHAR, place, 0, both, MPI_STATUS_IGNORE);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

static void start_another(char *program) {
    char byte;
    MPI_Comm child;
    MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child, MPI_ERRCODES_IGNORE);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!rank) MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, child, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&child);
}

int main(int count, char **arguments) {
    MPI_Comm parent;
    MPI_Init(&count, &arguments);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Send("x", 1, MPI_CHAR, 0, 0, parent);
        MPI_Comm_disconnect(&parent);
    } else {
        between_groups();
        if (count > 1) start_another(arguments[1]);
    }
    MPI_Finalize();
    return 0;
}
