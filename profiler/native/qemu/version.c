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

static bool reads_right(void) {
    const qemu_plugin_meminfo_t r = QEMU_PLUGIN_MEM_R << 16, w = QEMU_PLUGIN_MEM_W << 16;
    for (unsigned shift = 0; shift < 5; shift++)
        if (qemu_plugin_mem_size_shift(r | shift << qemu_size_bit) != shift) return false;
    return !qemu_plugin_mem_is_store(r) && qemu_plugin_mem_is_store(w) && qemu_plugin_mem_is_store(r | w);
}

bool qemu_info_is_known(void) {
    for (qemu_size_bit = 4; qemu_size_bit < 6; qemu_size_bit++) /* 5 since QEMU 11 */
        if (reads_right()) return true;
    return false;
}
