/* A library that an MPI program is started with, to count what its ranks send each other.
 *
 * The user's own mpicc builds it when it is first needed (profiler/messages/building.py): every MPI has types and
 * numbers of its own. It stands before MPI's functions and calls them by their second names (PMPI_…). It is loaded into
 * whatever the job starts, programs without MPI too, so it needs no symbol of MPI: it looks for them when they are used.
 */
#ifndef NUMAPLAN_MESSAGES_H
#define NUMAPLAN_MESSAGES_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum ms_kind { MS_SENT, MS_PUT, MS_GET, MS_MODELLED }; /* as profiler/messages/library.py has them */

/* ---- real.c ---- */

/* A function or variable of the MPI in this process; NULL: it has none of that name. */
void *ms_real(_Atomic(void *) *known, const char *name);

#define REAL(function)                                         \
    (__extension__({                                           \
        static _Atomic(void *) known;                          \
        (__typeof__(&function))ms_real(&known, "P" #function); \
    }))

/* ---- record.c: the file that outlives the process, however it ends ---- */

extern __thread int ms_depth
    __attribute__((tls_model("initial-exec"))); /* within MPI: what it sends is not the program's */

/* A call of MPI's own function. */
#define INSIDE(call)       \
    (__extension__({       \
        ms_depth++;        \
        int result = call; \
        ms_depth--;        \
        result;            \
    }))

bool ms_counts(void); /* whether what the calling thread does now is to be counted */
void ms_open(void);
void ms_add(enum ms_kind kind, int peer, long long bytes, long long count); /* peer: of MPI_COMM_WORLD */

/* ---- groups.c ---- */

struct ms_group { /* who the ranks of a communicator or window are in MPI_COMM_WORLD */
    int size, rank; /* rank: -1 where the group is another one's, as in an intercommunicator */
    int world[];
};

const struct ms_group *ms_group_of(MPI_Comm comm); /* NULL: not known */
const struct ms_group *ms_window_group(MPI_Win window);
int ms_world_rank(MPI_Comm comm, int peer); /* -1: none, or not known */
long long ms_bytes(long long count, MPI_Datatype type);

/* ---- models.c: the messages of collective operations, as this rank would send them ---- */

void ms_barrier(MPI_Comm comm); /* dissemination */
void ms_bcast(MPI_Comm comm, int root, long long bytes); /* binomial tree */
void ms_reduce(MPI_Comm comm, int root, long long bytes); /* binomial tree */
/* Recursive doubling, or halving and doubling of much. */
void ms_allreduce(MPI_Comm comm, long long elements, long long bytes);
void ms_scan(MPI_Comm comm, long long bytes); /* recursive doubling */
void ms_gather(MPI_Comm comm, int root, long long block); /* binomial tree; block: of each rank */
void ms_scatter(MPI_Comm comm, int root, long long block); /* binomial tree */
void ms_allgather(MPI_Comm comm, long long bytes); /* ring; bytes: all that is sent on */
void ms_to(MPI_Comm comm, int peer, long long bytes); /* one message, to another rank */
void ms_to_all(MPI_Comm comm, long long block); /* the same to each */
void ms_to_neighbours(MPI_Comm comm, long long block);
int ms_neighbours(MPI_Comm comm, int **peers); /* how many; peers: to be freed */
int ms_size(MPI_Comm comm); /* of what a collective operation is counted in; 0: it is not */
int ms_rank(MPI_Comm comm);

#pragma GCC visibility pop
#endif
