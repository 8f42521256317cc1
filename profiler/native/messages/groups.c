/* Who the ranks of communicators and windows are, and how large what they send is.
 *
 * It is kept with the communicator or window itself, as an attribute: MPI frees it in time, whoever asks for that.
 */
#define _GNU_SOURCE
#include "messages.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_once_t made = PTHREAD_ONCE_INIT;
static int comm_key, window_key;
static MPI_Comm world;
static MPI_Group world_group;

static int free_with_comm(MPI_Comm comm, int key, void *group, void *state) {
    (void)comm, (void)key, (void)state;
    free(group);
    return MPI_SUCCESS;
}

static int free_with_window(MPI_Win window, int key, void *group, void *state) {
    (void)window, (void)key, (void)state;
    free(group);
    return MPI_SUCCESS;
}

static int copy_none(MPI_Comm comm, int key, void *state, void *value, void *copy, int *wanted) {
    (void)comm, (void)key, (void)state, (void)value, (void)copy;
    *wanted = 0;
    return MPI_SUCCESS;
}

static int copy_no_window(MPI_Win window, int key, void *state, void *value, void *copy, int *wanted) {
    (void)window, (void)key, (void)state, (void)value, (void)copy;
    *wanted = 0;
    return MPI_SUCCESS;
}

static void make(void) {
    ms_depth++;
#ifdef OPEN_MPI
    static _Atomic(void *) known;
    world = ms_real(&known, "ompi_mpi_comm_world");
#else
    world = MPI_COMM_WORLD;
#endif
    REAL(MPI_Comm_create_keyval)(copy_none, free_with_comm, &comm_key, NULL);
    REAL(MPI_Win_create_keyval)(copy_no_window, free_with_window, &window_key, NULL);
    REAL(MPI_Comm_group)(world, &world_group);
    ms_depth--;
}

/* Of a group's ranks; own: whether the caller is in it. Frees the group. */
static struct ms_group *translated(MPI_Group group, bool own) {
    int size;
    struct ms_group *found = NULL;
    int *all = NULL;
    if (!REAL(MPI_Group_size)(group, &size) && size >= 0) {
        found = malloc(sizeof *found + (size_t)size * sizeof found->world[0]);
        all = malloc(((size_t)size + 1) * sizeof *all);
    }
    if (found && all) {
        found->size = size, found->rank = -1;
        for (int i = 0; i < size; i++) all[i] = i;
        REAL(MPI_Group_translate_ranks)(group, size, all, world_group, found->world);
        for (int i = 0; i < size; i++)
            if (found->world[i] < 0) found->world[i] = -1; /* MPI_UNDEFINED */
        if (own) REAL(MPI_Group_rank)(group, &found->rank);
    } else {
        free(found);
        found = NULL;
    }
    free(all);
    REAL(MPI_Group_free)(&group);
    return found;
}

const struct ms_group *ms_group_of(MPI_Comm comm) {
    struct ms_group *found = NULL;
    MPI_Group group;
    int there = 0, inter = 0;
    ms_depth++;
    pthread_once(&made, make);
    if (!REAL(MPI_Comm_get_attr)(comm, comm_key, &found, &there) && !there) {
        found = NULL;
        REAL(MPI_Comm_test_inter)(comm, &inter);
        if (!(inter ? REAL(MPI_Comm_remote_group) : REAL(MPI_Comm_group))(comm, &group))
            found = translated(group, !inter);
        if (found && REAL(MPI_Comm_set_attr)(comm, comm_key, found)) found = NULL;
    }
    ms_depth--;
    return found;
}

const struct ms_group *ms_window_group(MPI_Win window) {
    struct ms_group *found = NULL;
    MPI_Group group;
    int there = 0;
    ms_depth++;
    pthread_once(&made, make);
    if (!REAL(MPI_Win_get_attr)(window, window_key, &found, &there) && !there) {
        found = REAL(MPI_Win_get_group)(window, &group) ? NULL : translated(group, true);
        if (found && REAL(MPI_Win_set_attr)(window, window_key, found)) found = NULL;
    }
    ms_depth--;
    return found;
}

int ms_world_rank(MPI_Comm comm, int peer) {
    pthread_once(&made, make);
    if (comm == world) return peer;
    const struct ms_group *group = ms_group_of(comm);
    return group && peer < group->size ? group->world[peer] : -1;
}

long long ms_bytes(long long count, MPI_Datatype type) {
    MPI_Count size = 0;
    if (count <= 0 || REAL(MPI_Type_size_x)(type, &size) || size < 0) return 0;
    return count * (long long)size;
}
