/* Blocks and static data with known names: where one is made or declared, a comment says which, and its type. */
#include <stdlib.h>
#include <sys/mman.h>

enum { N = 20000 };

#define KEEP(memory) __asm__ volatile("" : : "g"(memory) : "memory") /* what is never read would not be made */

struct cell {
    long hits;
    double value[3];
};

struct simulation {
    int steps;
    double *field;
};

static double table[N]; /* region: table double[20000] */
static struct cell cells[4096]; /* region: cells cell[4096] */
double *shared;

int main(int argc, char **argv) {
    struct simulation simulation = {.steps = argc};
    struct simulation *behind = &simulation;
    KEEP(behind);
    double *grid = malloc(N * sizeof *grid); /* region: grid double[] */
    shared = calloc(N, sizeof *shared); /* region: shared double[] */
    float *many = NULL;
    KEEP(&many);
    many = realloc(many, N * sizeof *many); /* region: many float[] */
    behind->field = malloc(N * sizeof(double) * (size_t)argc); /* region: field double[] */
    struct cell *list = aligned_alloc(64, N * sizeof *list); /* region: list cell[] */
    char *mapped =
        mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* region: mapped char[] */
    double (*matrix)[200 * argc] = malloc(100 * sizeof *matrix); /* region: matrix double[][] */
    KEEP(matrix);
    KEEP(grid);
    KEEP(list);
    KEEP(mapped);
    KEEP(table);
    KEEP(cells);
    return argv == NULL;
}
