/* Power the machine off. */
#include "guest.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/reboot.h>
#include <unistd.h>

void guest_power_off(void) {
    sync();
    reboot(RB_POWER_OFF);
    for (;;) pause();
}

void guest_die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("numaplan lab: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    guest_power_off();
}
