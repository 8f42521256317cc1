/* For which version of QEMU's plugin interface this library was built: for the one that the QEMU at hand takes.
 *
 * QEMU reads qemu_plugin_version after it has loaded the library, which has then looked what QEMU offers. What takes
 * version 7 offers nothing that version 6 has not, so who starts such a QEMU says so.
 */
#include "qemu_plugin.h"

#include <stdlib.h>

/* Of version 2, which is the least that QEMU takes since it has it. */
extern void *qemu_plugin_scoreboard_new(size_t) __attribute__((weak));

PLUGIN_EXPORT int qemu_plugin_version = 1;

__attribute__((constructor)) static void speak_as_qemu(void) {
    const char *told = getenv("NUMAPLAN_QEMU_API");
    if (qemu_plugin_scoreboard_new) qemu_plugin_version = told != NULL ? atoi(told) : 2;
}

unsigned qemu_size_bit;
qemu_plugin_meminfo_t qemu_only_stores;

static bool reads_right(void) {
    const qemu_plugin_meminfo_t r = QEMU_PLUGIN_MEM_R << 16, w = QEMU_PLUGIN_MEM_W << 16;
    for (unsigned shift = 0; shift < 5; shift++)
        if (qemu_plugin_mem_size_shift(r | shift << qemu_size_bit) != shift) return false;
    return !qemu_plugin_mem_is_store(r) && qemu_plugin_mem_is_store(w) && qemu_plugin_mem_is_store(r | w);
}

bool qemu_info_is_known(void) {
    for (qemu_size_bit = 4; qemu_size_bit < 6; qemu_size_bit++) /* 5 since QEMU 10.2 */
        if (reads_right()) break;
    /* From then on what says that an access need not be atomic, as long as there is one thread, reaches into the bit of
     * loads. Its lowest bit is never set for an atomic read-modify-write. */
    qemu_only_stores = qemu_size_bit == 5 ? 1 << 14 : 0;
    return qemu_size_bit < 6;
}
