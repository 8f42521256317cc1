/* Collective operations, blocking or not: each is counted as the messages that models.c makes of it.
 *
 * Arguments that do not matter at a rank may hold anything there, so they are not looked at.
 */
#define _GNU_SOURCE
#include "messages.h"

#include <stdlib.h>

#define LIST(...) __VA_ARGS__

#define COLLECTIVE(name, Iname, parameters, arguments, model)   \
    int MPI_##name(LIST parameters) {                           \
        if (ms_size(comm) > 1) {                                \
            model;                                              \
        }                                                       \
        return INSIDE(REAL(MPI_##name)(LIST arguments));        \
    }                                                           \
    int MPI_##Iname(LIST parameters, MPI_Request *made) {       \
        if (ms_size(comm) > 1) {                                \
            model;                                              \
        }                                                       \
        return INSIDE(REAL(MPI_##Iname)(LIST arguments, made)); \
    }

/* What a rank contributes; where it is already in place, it is described by what the rank receives. */
static long long part(const void *out, long long sends, MPI_Datatype out_type, long long receives,
                      MPI_Datatype in_type) {
    return out == MPI_IN_PLACE ? ms_bytes(receives, in_type) : ms_bytes(sends, out_type);
}

#define OUT(N) const void *out, N sends, MPI_Datatype out_type
#define IN(N) void *in, N receives, MPI_Datatype in_type
#define OUT_V(N, D) const void *out, const N sends[], const D from[], MPI_Datatype out_type
#define IN_V(N, D) void *in, const N receives[], const D at[], MPI_Datatype in_type
#define TO_OUT out, sends, out_type
#define TO_IN in, receives, in_type
#define TO_OUT_V out, sends, from, out_type
#define TO_IN_V in, receives, at, in_type

/* Sums and single blocks of vectors of counts. */
#define ALL_BUT_NEXT(N)                                                                                     \
    static long long all_but_next_##N(MPI_Comm comm, const N counts[]) {                                    \
        int size = ms_size(comm), next = (ms_rank(comm) + 1) % size;                                        \
        long long sum = 0;                                                                                  \
        for (int i = 0; i < size; i++) sum += i == next ? 0 : counts[i];                                    \
        return sum;                                                                                         \
    }                                                                                                       \
    static void to_each_##N(MPI_Comm comm, const N counts[], MPI_Datatype type) {                           \
        for (int i = 0, size = ms_size(comm); i < size; i++) ms_to(comm, i, ms_bytes(counts[i], type));     \
    }                                                                                                       \
    static void to_each_of_##N(MPI_Comm comm, const N counts[], const MPI_Datatype types[]) {               \
        for (int i = 0, size = ms_size(comm); i < size; i++) ms_to(comm, i, ms_bytes(counts[i], types[i])); \
    }                                                                                                       \
    static void to_each_neighbour_##N(MPI_Comm comm, const N counts[], MPI_Datatype type) {                 \
        int *peers, count = ms_neighbours(comm, &peers);                                                    \
        for (int i = 0; i < count; i++) ms_to(comm, peers[i], ms_bytes(counts[i], type));                   \
        free(peers);                                                                                        \
    }                                                                                                       \
    static void to_each_neighbour_of_##N(MPI_Comm comm, const N counts[], const MPI_Datatype types[]) {     \
        int *peers, count = ms_neighbours(comm, &peers);                                                    \
        for (int i = 0; i < count; i++) ms_to(comm, peers[i], ms_bytes(counts[i], types[i]));               \
        free(peers);                                                                                        \
    }

COLLECTIVE(Barrier, Ibarrier, (MPI_Comm comm), (comm), ms_barrier(comm))

#define COLLECTIVES(S, N, D)                                                                                          \
    ALL_BUT_NEXT(N)                                                                                                   \
    COLLECTIVE(Bcast##S, Ibcast##S, (void *both, N count, MPI_Datatype type, int root, MPI_Comm comm),                \
               (both, count, type, root, comm), ms_bcast(comm, root, ms_bytes(count, type)))                          \
    COLLECTIVE(Reduce##S, Ireduce##S,                                                                                 \
               (const void *out, void *in, N count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),           \
               (out, in, count, type, op, root, comm), ms_reduce(comm, root, ms_bytes(count, type)))                  \
    COLLECTIVE(Allreduce##S, Iallreduce##S,                                                                           \
               (const void *out, void *in, N count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                     \
               (out, in, count, type, op, comm), ms_allreduce(comm, count, ms_bytes(count, type)))                    \
    COLLECTIVE(Scan##S, Iscan##S, (const void *out, void *in, N count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),  \
               (out, in, count, type, op, comm), ms_scan(comm, ms_bytes(count, type)))                                \
    COLLECTIVE(Exscan##S, Iexscan##S,                                                                                 \
               (const void *out, void *in, N count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                     \
               (out, in, count, type, op, comm), ms_scan(comm, ms_bytes(count, type)))                                \
    COLLECTIVE(Gather##S, Igather##S, (OUT(N), IN(N), int root, MPI_Comm comm), (TO_OUT, TO_IN, root, comm),          \
               if (ms_rank(comm) != root) ms_gather(comm, root, ms_bytes(sends, out_type)))                           \
    COLLECTIVE(Gatherv##S, Igatherv##S, (OUT(N), IN_V(N, D), int root, MPI_Comm comm), (TO_OUT, TO_IN_V, root, comm), \
               if (ms_rank(comm) != root) ms_to(comm, root, ms_bytes(sends, out_type)))                               \
    COLLECTIVE(                                                                                                       \
        Scatter##S, Iscatter##S, (OUT(N), IN(N), int root, MPI_Comm comm), (TO_OUT, TO_IN, root, comm),               \
        ms_scatter(comm, root, ms_rank(comm) == root ? ms_bytes(sends, out_type) : ms_bytes(receives, in_type)))      \
    COLLECTIVE(Scatterv##S, Iscatterv##S, (OUT_V(N, D), IN(N), int root, MPI_Comm comm),                              \
               (TO_OUT_V, TO_IN, root, comm), if (ms_rank(comm) == root) to_each_##N(comm, sends, out_type))          \
    COLLECTIVE(Allgather##S, Iallgather##S, (OUT(N), IN(N), MPI_Comm comm), (TO_OUT, TO_IN, comm),                    \
               ms_allgather(comm, (ms_size(comm) - 1) * part(out, sends, out_type, receives, in_type)))               \
    COLLECTIVE(Allgatherv##S, Iallgatherv##S, (OUT(N), IN_V(N, D), MPI_Comm comm), (TO_OUT, TO_IN_V, comm),           \
               ms_allgather(comm, ms_bytes(all_but_next_##N(comm, receives), in_type)))                               \
    COLLECTIVE(Alltoall##S, Ialltoall##S, (OUT(N), IN(N), MPI_Comm comm), (TO_OUT, TO_IN, comm),                      \
               ms_to_all(comm, part(out, sends, out_type, receives, in_type)))                                        \
    COLLECTIVE(Alltoallv##S, Ialltoallv##S, (OUT_V(N, D), IN_V(N, D), MPI_Comm comm), (TO_OUT_V, TO_IN_V, comm),      \
               if (out == MPI_IN_PLACE) to_each_##N(comm, receives, in_type);                                         \
               else to_each_##N(comm, sends, out_type))                                                               \
    COLLECTIVE(Reduce_scatter##S, Ireduce_scatter##S,                                                                 \
               (const void *out, void *in, const N receives[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),          \
               (out, in, receives, type, op, comm), to_each_##N(comm, receives, type))                                \
    COLLECTIVE(Reduce_scatter_block##S, Ireduce_scatter_block##S,                                                     \
               (const void *out, void *in, N receives, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                  \
               (out, in, receives, type, op, comm), ms_to_all(comm, ms_bytes(receives, type)))                        \
    COLLECTIVE(Neighbor_allgather##S, Ineighbor_allgather##S, (OUT(N), IN(N), MPI_Comm comm), (TO_OUT, TO_IN, comm),  \
               ms_to_neighbours(comm, ms_bytes(sends, out_type)))                                                     \
    COLLECTIVE(Neighbor_allgatherv##S, Ineighbor_allgatherv##S, (OUT(N), IN_V(N, D), MPI_Comm comm),                  \
               (TO_OUT, TO_IN_V, comm), ms_to_neighbours(comm, ms_bytes(sends, out_type)))                            \
    COLLECTIVE(Neighbor_alltoall##S, Ineighbor_alltoall##S, (OUT(N), IN(N), MPI_Comm comm), (TO_OUT, TO_IN, comm),    \
               ms_to_neighbours(comm, ms_bytes(sends, out_type)))                                                     \
    COLLECTIVE(Neighbor_alltoallv##S, Ineighbor_alltoallv##S, (OUT_V(N, D), IN_V(N, D), MPI_Comm comm),               \
               (TO_OUT_V, TO_IN_V, comm), to_each_neighbour_##N(comm, sends, out_type))

/* These two take addresses of another type, or each block's own type. */
#define COLLECTIVES_OF_TYPES(S, N, D, W)                                                                    \
    COLLECTIVE(Alltoallw##S, Ialltoallw##S,                                                                 \
               (const void *out, const N sends[], const D from[], const MPI_Datatype out_types[], void *in, \
                const N receives[], const D at[], const MPI_Datatype in_types[], MPI_Comm comm),            \
               (out, sends, from, out_types, in, receives, at, in_types, comm),                             \
               if (out == MPI_IN_PLACE) to_each_of_##N(comm, receives, in_types);                           \
               else to_each_of_##N(comm, sends, out_types))                                                 \
    COLLECTIVE(Neighbor_alltoallw##S, Ineighbor_alltoallw##S,                                               \
               (const void *out, const N sends[], const W from[], const MPI_Datatype out_types[], void *in, \
                const N receives[], const W at[], const MPI_Datatype in_types[], MPI_Comm comm),            \
               (out, sends, from, out_types, in, receives, at, in_types, comm),                             \
               to_each_neighbour_of_##N(comm, sends, out_types))

COLLECTIVES(, int, int)
COLLECTIVES_OF_TYPES(, int, int, MPI_Aint)
#if MPI_VERSION >= 4
COLLECTIVES(_c, MPI_Count, MPI_Aint)
COLLECTIVES_OF_TYPES(_c, MPI_Count, MPI_Aint, MPI_Aint)
#endif
