/* Sets its affinity to these cpus, after it looked at a file, and says how many it has then:
 * `host_cpus FILE CPU…`. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int i = 2; i < argc; i++) CPU_SET(atoi(argv[i]), &mask);
    if (open(argv[1], O_RDONLY) < 0 || sched_setaffinity(0, sizeof mask, &mask)) return 1;
    sched_getaffinity(0, sizeof mask, &mask);
    printf("has %d\n", CPU_COUNT(&mask));
    fflush(stdout);
    execlp("nproc", "nproc", NULL);
    return 1;
}
