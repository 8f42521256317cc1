/* Reserves 1 TiB as servers do, uses the first pages and some beyond, gives it back, and reserves again; prints how many
 * MiB it had in memory at most. */
#include <stdio.h>
#include <sys/mman.h>

enum { PAGES = 64, PAGE = 4096 };

int main(void) {
    const size_t bytes = (size_t)1 << 40;
    char line[256], *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, PAGES * PAGE, PROT_READ | PROT_WRITE)) return 1;
    for (int page = 0; page < PAGES; page++) memory[page * PAGE] = 1;
    char *fixed = mmap(memory + PAGES * PAGE, PAGE, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (fixed == MAP_FAILED) return 2;
    *fixed = 1;
    const int apart = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    char *beyond = mmap(memory + bytes / 2, PAGE, PROT_WRITE, apart, -1, 0);
    if (beyond != memory + bytes / 2) return 3;
    *beyond = 1;
    for (int turn = 0; turn < 12; turn++) { /* what is given back has its place again */
        if (munmap(memory, bytes)) return 4;
        memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return 5;
    }
    long most = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %ld", &most);
    printf("%ld\n", most >> 10);
    return !most;
}
