#include "turns.h"

bool lab_turns_taken;

void lab_turns_open(unsigned vcpus) {
    cpu_set_t host;
    lab_turns_taken = sched_getaffinity(0, sizeof host, &host) || (unsigned)CPU_COUNT(&host) < vcpus;
}
