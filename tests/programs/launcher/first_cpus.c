/* An audit library of the loader: prints the cpus that a process has before anything is loaded into it. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

unsigned la_version(unsigned version);

unsigned la_version(unsigned version) {
    cpu_set_t mask;
    char text[4096] = "starts on";
    if (sched_getaffinity(0, sizeof mask, &mask)) return version;
    for (int cpu = 0; cpu < CPU_SETSIZE && strlen(text) < sizeof text - 16; cpu++)
        if (CPU_ISSET(cpu, &mask)) snprintf(text + strlen(text), 16, " %d", cpu);
    strcat(text, "\n");
    return write(STDOUT_FILENO, text, strlen(text)) > 0 ? version : 0;
}
