/* For which version of QEMU's plugin interface this library was built: for the one that the QEMU at hand takes.
 *
 * QEMU reads qemu_plugin_version after it has loaded the library, which has then looked what QEMU offers.
 */
#include "qemu_plugin.h"

/* Of version 2, which is the least that QEMU takes since it has it. */
extern void *qemu_plugin_scoreboard_new(size_t) __attribute__((weak));

PLUGIN_EXPORT int qemu_plugin_version = 1;

__attribute__((constructor)) static void speak_as_qemu(void) {
    if (qemu_plugin_scoreboard_new) qemu_plugin_version = 2;
}
