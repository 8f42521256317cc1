/* The steps of a boot: set the machine up, say that it is ready, run what is asked for. */
#include "guest.h"

#include <signal.h>

int main(void) {
    guest_load_modules();
    guest_enter_host_tree();
    guest_start_network();
    int control = guest_open_port(PORT_CONTROL);
    signal(SIGPIPE, SIG_IGN);
    guest_mark_open();
    struct guest_frame frame = {0};
    guest_frame_add(&frame, "event", "ready");
    guest_calibrate(&frame);
    guest_sampler_open();
    guest_frame_send(control, &frame);
    while (guest_frame_read(control, &frame)) guest_run_job(&frame, control);
    guest_power_off();
}
