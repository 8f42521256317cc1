/* The functions that the library wraps. All are found when the library starts: dlsym takes a lock that the child of a fork,
 * or a signal handler, may find held.
 */
#include "preload.h"

#include <dlfcn.h>

extern struct np_real __start_np_reals[], __stop_np_reals[];

void *np_real_find(struct np_real *real) {
    void *found = dlsym(RTLD_NEXT, real->name);
    atomic_store_explicit(&real->function, found, memory_order_relaxed);
    return found;
}

void np_reals_find(void) {
    for (struct np_real *real = __start_np_reals; real < __stop_np_reals; real++) np_real_find(real);
}
