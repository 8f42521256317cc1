/* What is put into the memory of other ranks, and got from there. */
#define _GNU_SOURCE
#include "messages.h"

static void moved(enum ms_kind kind, MPI_Win window, int peer, long long bytes) {
    const struct ms_group *group = ms_window_group(window);
    ms_add(kind, group && peer < group->size ? group->world[peer] : -1, bytes, 1);
}

#define MOVED(kind, count, type)                                                        \
    do {                                                                                \
        if (peer >= 0 && ms_counts()) moved(kind, window, peer, ms_bytes(count, type)); \
    } while (0)

#define TARGET(N) int peer, MPI_Aint at, N its_count, MPI_Datatype its_type
#define TO_TARGET peer, at, its_count, its_type

#define MOVES(S, N)                                                                                                \
    int MPI_Put##S(const void *out, N count, MPI_Datatype type, TARGET(N), MPI_Win window) {                       \
        MOVED(MS_PUT, count, type);                                                                                \
        return INSIDE(REAL(MPI_Put##S)(out, count, type, TO_TARGET, window));                                      \
    }                                                                                                              \
    int MPI_Rput##S(const void *out, N count, MPI_Datatype type, TARGET(N), MPI_Win window, MPI_Request *made) {   \
        MOVED(MS_PUT, count, type);                                                                                \
        return INSIDE(REAL(MPI_Rput##S)(out, count, type, TO_TARGET, window, made));                               \
    }                                                                                                              \
    int MPI_Get##S(void *in, N count, MPI_Datatype type, TARGET(N), MPI_Win window) {                              \
        MOVED(MS_GET, count, type);                                                                                \
        return INSIDE(REAL(MPI_Get##S)(in, count, type, TO_TARGET, window));                                       \
    }                                                                                                              \
    int MPI_Rget##S(void *in, N count, MPI_Datatype type, TARGET(N), MPI_Win window, MPI_Request *made) {          \
        MOVED(MS_GET, count, type);                                                                                \
        return INSIDE(REAL(MPI_Rget##S)(in, count, type, TO_TARGET, window, made));                                \
    }                                                                                                              \
    int MPI_Accumulate##S(const void *out, N count, MPI_Datatype type, TARGET(N), MPI_Op op, MPI_Win window) {     \
        MOVED(MS_PUT, count, type);                                                                                \
        return INSIDE(REAL(MPI_Accumulate##S)(out, count, type, TO_TARGET, op, window));                           \
    }                                                                                                              \
    int MPI_Raccumulate##S(const void *out, N count, MPI_Datatype type, TARGET(N), MPI_Op op, MPI_Win window,      \
                           MPI_Request *made) {                                                                    \
        MOVED(MS_PUT, count, type);                                                                                \
        return INSIDE(REAL(MPI_Raccumulate##S)(out, count, type, TO_TARGET, op, window, made));                    \
    }                                                                                                              \
    int MPI_Get_accumulate##S(const void *out, N count, MPI_Datatype type, void *in, N got, MPI_Datatype got_type, \
                              TARGET(N), MPI_Op op, MPI_Win window) {                                              \
        MOVED(MS_PUT, count, type); /* nothing with MPI_NO_OP, for which the count may be 0 */                     \
        MOVED(MS_GET, got, got_type);                                                                              \
        return INSIDE(REAL(MPI_Get_accumulate##S)(out, count, type, in, got, got_type, TO_TARGET, op, window));    \
    }

MOVES(, int)
#if MPI_VERSION >= 4
MOVES(_c, MPI_Count)
#endif

int MPI_Fetch_and_op(const void *out, void *in, MPI_Datatype type, int peer, MPI_Aint at, MPI_Op op, MPI_Win window) {
    MOVED(MS_PUT, 1, type);
    MOVED(MS_GET, 1, type);
    return INSIDE(REAL(MPI_Fetch_and_op)(out, in, type, peer, at, op, window));
}

int MPI_Compare_and_swap(const void *out, const void *expected, void *in, MPI_Datatype type, int peer, MPI_Aint at,
                         MPI_Win window) {
    MOVED(MS_PUT, 2, type);
    MOVED(MS_GET, 1, type);
    return INSIDE(REAL(MPI_Compare_and_swap)(out, expected, in, type, peer, at, window));
}
