/* Messages from one rank to another, and persistent requests, which send each time they are started. */
#define _GNU_SOURCE
#include "messages.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SENT(count, type, peer, comm)                                                                         \
    do {                                                                                                      \
        if ((peer) >= 0 && ms_counts()) ms_add(MS_SENT, ms_world_rank(comm, peer), ms_bytes(count, type), 1); \
    } while (0)

#define SEND(name, N)                                                                               \
    int MPI_##name(const void *out, N count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) { \
        SENT(count, type, peer, comm);                                                              \
        return INSIDE(REAL(MPI_##name)(out, count, type, peer, tag, comm));                         \
    }

#define ISEND(name, N)                                                                                                 \
    int MPI_##name(const void *out, N count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *made) { \
        SENT(count, type, peer, comm);                                                                                 \
        return INSIDE(REAL(MPI_##name)(out, count, type, peer, tag, comm, made));                                      \
    }

#define SENDRECV(S, N)                                                                                              \
    int MPI_Sendrecv##S(const void *out, N sends, MPI_Datatype type, int peer, int tag, void *in, N receives,       \
                        MPI_Datatype its_type, int source, int its_tag, MPI_Comm comm, MPI_Status *status) {        \
        SENT(sends, type, peer, comm);                                                                              \
        return INSIDE(REAL(MPI_Sendrecv##S)(out, sends, type, peer, tag, in, receives, its_type, source, its_tag,   \
                                            comm, status));                                                         \
    }                                                                                                               \
    int MPI_Sendrecv_replace##S(void *both, N count, MPI_Datatype type, int peer, int tag, int source, int its_tag, \
                                MPI_Comm comm, MPI_Status *status) {                                                \
        SENT(count, type, peer, comm);                                                                              \
        return INSIDE(REAL(MPI_Sendrecv_replace##S)(both, count, type, peer, tag, source, its_tag, comm, status));  \
    }

#define ISENDRECV(S, N)                                                                                                \
    int MPI_Isendrecv##S(const void *out, N sends, MPI_Datatype type, int peer, int tag, void *in, N receives,         \
                         MPI_Datatype its_type, int source, int its_tag, MPI_Comm comm, MPI_Request *made) {           \
        SENT(sends, type, peer, comm);                                                                                 \
        return INSIDE(                                                                                                 \
            REAL(MPI_Isendrecv##S)(out, sends, type, peer, tag, in, receives, its_type, source, its_tag, comm, made)); \
    }                                                                                                                  \
    int MPI_Isendrecv_replace##S(void *both, N count, MPI_Datatype type, int peer, int tag, int source, int its_tag,   \
                                 MPI_Comm comm, MPI_Request *made) {                                                   \
        SENT(count, type, peer, comm);                                                                                 \
        return INSIDE(REAL(MPI_Isendrecv_replace##S)(both, count, type, peer, tag, source, its_tag, comm, made));      \
    }

/* ---- persistent requests ---- */

struct request {
    MPI_Request request;
    int peer;
    long long bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct request *requests; /* in order of creation, those that were freed left out */
static size_t used, room;

static struct request *find(MPI_Request request) {
    for (size_t i = used; i-- > 0;)
        if (requests[i].request == request) return &requests[i];
    return NULL;
}

static void forget(MPI_Request request) {
    pthread_mutex_lock(&lock);
    struct request *known = find(request);
    if (known) *known = requests[--used];
    pthread_mutex_unlock(&lock);
}

static void keep(MPI_Request request, int peer, long long bytes) {
    pthread_mutex_lock(&lock);
    if (used == room) {
        size_t more = room ? room * 2 : 64;
        struct request *larger = realloc(requests, more * sizeof *requests);
        if (larger) requests = larger, room = more;
    }
    if (used < room) requests[used++] = (struct request){request, peer, bytes};
    pthread_mutex_unlock(&lock);
}

static void started(MPI_Request request) {
    if (!ms_counts()) return;
    pthread_mutex_lock(&lock);
    struct request *known = find(request), found = known ? *known : (struct request){0};
    pthread_mutex_unlock(&lock);
    if (known) ms_add(MS_SENT, found.peer, found.bytes, 1);
}

#define SEND_INIT(name, N)                                                                                             \
    int MPI_##name(const void *out, N count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *made) { \
        int result = INSIDE(REAL(MPI_##name)(out, count, type, peer, tag, comm, made));                                \
        if (!result && peer >= 0 && ms_counts()) keep(*made, ms_world_rank(comm, peer), ms_bytes(count, type));        \
        return result;                                                                                                 \
    }

int MPI_Start(MPI_Request *request) {
    started(*request);
    return INSIDE(REAL(MPI_Start)(request));
}

int MPI_Startall(int count, MPI_Request array[]) {
    for (int i = 0; i < count; i++) started(array[i]);
    return INSIDE(REAL(MPI_Startall)(count, array));
}

int MPI_Request_free(MPI_Request *request) {
    forget(*request);
    return INSIDE(REAL(MPI_Request_free)(request));
}

#define SENDS(S, N)             \
    SEND(Send##S, N)            \
    SEND(Bsend##S, N)           \
    SEND(Ssend##S, N)           \
    SEND(Rsend##S, N)           \
    ISEND(Isend##S, N)          \
    ISEND(Ibsend##S, N)         \
    ISEND(Issend##S, N)         \
    ISEND(Irsend##S, N)         \
    SEND_INIT(Send_init##S, N)  \
    SEND_INIT(Bsend_init##S, N) \
    SEND_INIT(Ssend_init##S, N) \
    SEND_INIT(Rsend_init##S, N) \
    SENDRECV(S, N)

SENDS(, int)
#if MPI_VERSION >= 4
ISENDRECV(, int)
SENDS(_c, MPI_Count)
ISENDRECV(_c, MPI_Count)

int MPI_Psend_init(const void *out, int parts, MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                   MPI_Info info, MPI_Request *made) {
    int result = INSIDE(REAL(MPI_Psend_init)(out, parts, count, type, peer, tag, comm, info, made));
    if (!result && peer >= 0 && ms_counts()) keep(*made, ms_world_rank(comm, peer), parts * ms_bytes(count, type));
    return result;
}
#endif
