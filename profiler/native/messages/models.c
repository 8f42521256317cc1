/* Collective operations as messages: what this rank would send by an algorithm that MPIs use.
 *
 * Which one an MPI really takes depends on its version and settings, on sizes and on the network. These are MPICH's,
 * and mostly Open MPI's, between few ranks; the sum of bytes is nearly that of the others.
 */
#define _GNU_SOURCE
#include "messages.h"

#include <stdlib.h>

/* Bytes from which a reduction to all is done in pieces, where there are enough: Open MPI 4.1's, MPICH's since 4.0,
 * and what MPICH had before.
 */
#if defined(OPEN_MPI)
enum { MUCH = 8192 };
#elif defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40000000
enum { MUCH = 9 };
#else
enum { MUCH = 2049 };
#endif

static const struct ms_group *counted(MPI_Comm comm) {
    if (!ms_counts()) return NULL;
    const struct ms_group *group = ms_group_of(comm);
    return group && group->rank >= 0 ? group : NULL;
}

int ms_size(MPI_Comm comm) {
    const struct ms_group *group = counted(comm);
    return group ? group->size : 0;
}

int ms_rank(MPI_Comm comm) {
    const struct ms_group *group = counted(comm);
    return group ? group->rank : -1;
}

static void send(const struct ms_group *group, int peer, long long bytes, int count) {
    if (peer != group->rank) ms_add(MS_MODELLED, group->world[peer], bytes, count);
}

void ms_to(MPI_Comm comm, int peer, long long bytes) {
    const struct ms_group *group = counted(comm);
    if (group && peer >= 0 && peer < group->size) send(group, peer, bytes, 1);
}

void ms_to_all(MPI_Comm comm, long long block) {
    const struct ms_group *group = counted(comm);
    for (int peer = 0; group && peer < group->size; peer++) send(group, peer, block, 1);
}

void ms_barrier(MPI_Comm comm) {
    const struct ms_group *group = counted(comm);
    if (!group) return;
    for (long long step = 1; step < group->size; step *= 2)
        send(group, (int)((group->rank + step) % group->size), 0, 1);
}

void ms_allgather(MPI_Comm comm, long long bytes) {
    const struct ms_group *group = counted(comm);
    if (group && group->size > 1) send(group, (group->rank + 1) % group->size, bytes, group->size - 1);
}

/* ---- trees: ranks are counted from the root; a rank's parent is it without its lowest bit ---- */

/* How many ranks are below one in the tree, itself included. */
static long long below(const struct ms_group *group, int place) {
    long long bit = place ? place & -place : group->size;
    return bit < group->size - place ? bit : group->size - place;
}

static int place_of(const struct ms_group *group, int root) { return (group->rank - root + group->size) % group->size; }

static int rank_at(const struct ms_group *group, int root, long long place) {
    return (int)((place + root) % group->size);
}

/* each: bytes for each rank below the child, 0: the same to every child. */
static void down(MPI_Comm comm, int root, long long bytes, long long each) {
    const struct ms_group *group = counted(comm);
    if (!group || root < 0) return;
    int place = place_of(group, root);
    long long most = place ? place & -place : group->size;
    for (long long bit = 1; bit < most && place + bit < group->size; bit *= 2)
        send(group, rank_at(group, root, place + bit), bytes + each * below(group, (int)(place + bit)), 1);
}

static void up(MPI_Comm comm, int root, long long bytes, long long each) {
    const struct ms_group *group = counted(comm);
    if (!group || root < 0) return;
    int place = place_of(group, root);
    if (place) send(group, rank_at(group, root, place & (place - 1)), bytes + each * below(group, place), 1);
}

void ms_bcast(MPI_Comm comm, int root, long long bytes) { down(comm, root, bytes, 0); }
void ms_scatter(MPI_Comm comm, int root, long long block) { down(comm, root, 0, block); }
void ms_reduce(MPI_Comm comm, int root, long long bytes) { up(comm, root, bytes, 0); }
void ms_gather(MPI_Comm comm, int root, long long block) { up(comm, root, 0, block); }

/* ---- doubling ---- */

/* Between as many ranks as a power of two has. Of the first of the others, each even one hands its part to the next,
 * and gets the result from there.
 */
void ms_allreduce(MPI_Comm comm, long long elements, long long bytes) {
    const struct ms_group *group = counted(comm);
    if (!group) return;
    int power = 1, rank = group->rank;
    while (power * 2 <= group->size) power *= 2;
    int others = group->size - power;
    if (rank < 2 * others && rank % 2 == 0) {
        send(group, rank + 1, bytes, 1);
        return;
    }
    int mine = rank < 2 * others ? rank / 2 : rank - others;
    long long part = bytes;
    bool pieces = bytes >= MUCH && elements >= power;
    for (int bit = 1; bit < power; bit *= 2) {
        int its = mine ^ bit, peer = its < others ? its * 2 + 1 : its + others;
        part /= 2;
        /* In pieces: half of what is left to reduce, and as much of the result. */
        if (pieces) send(group, peer, 2 * part, 2);
        else send(group, peer, bytes, 1);
    }
    if (rank < 2 * others) send(group, rank - 1, bytes, 1);
}

void ms_scan(MPI_Comm comm, long long bytes) {
    const struct ms_group *group = counted(comm);
    for (long long bit = 1; group && bit < group->size; bit *= 2)
        if ((group->rank ^ bit) < group->size) send(group, (int)(group->rank ^ bit), bytes, 1);
}

/* ---- neighbours ---- */

static int cartesian(MPI_Comm comm, int **peers) {
    int dimensions = 0;
    if (REAL(MPI_Cartdim_get)(comm, &dimensions) || dimensions <= 0) return 0;
    if (!(*peers = malloc(2 * (size_t)dimensions * sizeof **peers))) return 0;
    for (int i = 0; i < dimensions; i++) REAL(MPI_Cart_shift)(comm, i, 1, &(*peers)[2 * i], &(*peers)[2 * i + 1]);
    return 2 * dimensions;
}

static int of_graph(MPI_Comm comm, int **peers) {
    int count = 0, rank;
    if (REAL(MPI_Comm_rank)(comm, &rank) || REAL(MPI_Graph_neighbors_count)(comm, rank, &count) || count <= 0) return 0;
    if (!(*peers = malloc((size_t)count * sizeof **peers))) return 0;
    return REAL(MPI_Graph_neighbors)(comm, rank, count, *peers) ? 0 : count;
}

static int of_distributed_graph(MPI_Comm comm, int **peers) {
    int in = 0, out = 0, weighted;
    if (REAL(MPI_Dist_graph_neighbors_count)(comm, &in, &out, &weighted) || out <= 0) return 0;
    int *all = malloc(((size_t)in * 2 + (size_t)out) * sizeof *all),
        *weights = malloc(((size_t)out + 1) * sizeof *weights);
    int failed =
        !all || !weights || REAL(MPI_Dist_graph_neighbors)(comm, in, all, all + in, out, all + 2 * in, weights);
    for (int i = 0; !failed && i < out; i++) all[i] = all[2 * in + i];
    free(weights);
    *peers = all;
    return failed ? 0 : out;
}

int ms_neighbours(MPI_Comm comm, int **peers) {
    int kind = MPI_UNDEFINED, count = 0;
    *peers = NULL;
    if (!counted(comm)) return 0;
    ms_depth++;
    REAL(MPI_Topo_test)(comm, &kind);
    if (kind == MPI_CART) count = cartesian(comm, peers);
    else if (kind == MPI_GRAPH) count = of_graph(comm, peers);
    else if (kind == MPI_DIST_GRAPH) count = of_distributed_graph(comm, peers);
    ms_depth--;
    return count;
}

void ms_to_neighbours(MPI_Comm comm, long long block) {
    int *peers, count = ms_neighbours(comm, &peers);
    for (int i = 0; i < count; i++) ms_to(comm, peers[i], block);
    free(peers);
}
