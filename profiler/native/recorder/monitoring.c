/* Open MPI's monitoring (profiler/messages/monitoring.py) writes in MPI_Finalize what a rank has sent, and misses what
 * persistent requests send. Here it is made to write when a rank ends in another way, and told of such requests.
 *
 * MPI's handles are numbers or addresses; either is passed on as it came. Programs that load MPI at run time keep it out
 * of the scope that all see, so it is looked for.
 */
#include "preload.h"
#include "recorder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

static const char *folder(void) { return np_env("NUMAPLAN_MONITORING"); }

struct search {
    const char *library, *name;
    void *found;
};

static int look_into(struct dl_phdr_info *module, size_t size, void *data) {
    (void)size;
    struct search *search = data;
    const char *file = strrchr(module->dlpi_name, '/');
    if (!file || strncmp(file + 1, search->library, strlen(search->library))) return 0;
    void *library = dlopen(module->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
    if (!library) return 0;
    search->found = dlsym(library, search->name);
    dlclose(library);
    return search->found != NULL;
}

static void *found_in(const char *library, const char *name) {
    struct search search = {library, name, NULL};
    dl_iterate_phdr(look_into, &search);
    return search.found;
}

/* MPI's own function of this name. */
static void *real_of(const char *name) {
    void *next = dlsym(RTLD_NEXT, name);
    return next ? next : found_in("libmpi", name);
}

void np_monitoring_end(void) {
    enum { COMPONENTS = 3 }; /* have it open: the last that ends it makes it write, after which it does nothing */
    if (!folder()) return;
    void (*end)(void) = found_in("libmca_common_monitoring", "mca_common_monitoring_finalize");
    for (int i = 0; end && i < COMPONENTS; i++) end();
}

__attribute__((visibility("default"))) int MPI_Abort(void *comm, int code) {
    int (*real)(void *, int) = real_of("MPI_Abort");
    if (np_active()) np_monitoring_end();
    return real(comm, code);
}

/* ---- persistent requests ---- */

static void tell_of_persistent(void) {
    char path[NP_PATH + 16];
    const char *place = folder();
    if (!place || !np_active() || strlen(place) >= NP_PATH) return;
    strcat(strcpy(path, place), "/persistent");
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) close(file);
}

typedef int send_init(const void *, int, void *, int, int, void *, void *);
typedef void fortran_init(void *, void *, void *, void *, void *, void *, void *, void *);

#define SEND_INIT(c, fortran)                                                                                      \
    __attribute__((visibility("default"))) int c(const void *out, int count, void *type, int peer, int tag,        \
                                                 void *comm, void *made) {                                         \
        send_init *real = real_of(#c);                                                                             \
        tell_of_persistent();                                                                                      \
        return real(out, count, type, peer, tag, comm, made);                                                      \
    }                                                                                                              \
    __attribute__((visibility("default"))) void fortran(void *out, void *count, void *type, void *peer, void *tag, \
                                                        void *comm, void *made, void *error) {                     \
        fortran_init *real = real_of(#fortran);                                                                    \
        tell_of_persistent();                                                                                      \
        real(out, count, type, peer, tag, comm, made, error);                                                      \
    }

SEND_INIT(MPI_Send_init, mpi_send_init_)
SEND_INIT(MPI_Bsend_init, mpi_bsend_init_)
SEND_INIT(MPI_Ssend_init, mpi_ssend_init_)
SEND_INIT(MPI_Rsend_init, mpi_rsend_init_)
