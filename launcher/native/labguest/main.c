#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

#include "guest.h"

void power_off(void) {
    sync();
    reboot(RB_POWER_OFF);
    for (;;)
        pause();
}

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("numaplan lab: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    power_off();
}

int main(void) {
    boot_load_modules();
    boot_enter_host_tree();
    int control = boot_open_port(PORT_CONTROL);
    signal(SIGPIPE, SIG_IGN);
    mark_open();
    struct frame frame = {0};
    frame_add(&frame, "event", "ready");
    calibrate(&frame);
    sampler_open();
    frame_send(control, &frame);
    while (frame_read(control, &frame))
        run_job(&frame, control);
    power_off();
}
