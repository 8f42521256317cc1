/* A tree of cells, OpenMP with tasks: each visit makes tasks for the upper levels, which any thread takes. The cells are
 * small blocks of malloc, made by the tasks of the first visit.
 *
 *     tasks [depth=20] [visits=6]
 */
#include <stdio.h>
#include <stdlib.h>

enum { TASK_LEVELS = 7, VALUES = 6 };

typedef struct cell {
    struct cell *left, *right;
    double values[VALUES];
} cell;

static cell *grow(int depth, int level) {
    cell *made = malloc(sizeof(cell));
    if (!made) exit(1);
    for (int k = 0; k < VALUES; k++) made->values[k] = 1.0;
    made->left = made->right = NULL;
    if (level == depth) return made;
#pragma omp task shared(made) final(level >= TASK_LEVELS) mergeable
    made->left = grow(depth, level + 1);
    made->right = grow(depth, level + 1);
#pragma omp taskwait
    return made;
}

/* Every cell passes part of what it has down, and hands the sum of all below it up. */
static double visit_below(cell *here, double from_above) {
    double sum = 0.0;
    for (int k = 0; k < VALUES; k++) {
        here->values[k] = 0.75 * here->values[k] + from_above;
        sum += here->values[k];
    }
    double down = sum / 64;
    if (here->left) sum += visit_below(here->left, down) + visit_below(here->right, down);
    return sum;
}

static double visit(cell *here, double from_above, int level) {
    if (level == TASK_LEVELS || !here->left) return visit_below(here, from_above);
    double left = 0.0, right = 0.0, sum = 0.0;
    for (int k = 0; k < VALUES; k++) sum += here->values[k] = 0.75 * here->values[k] + from_above;
#pragma omp task shared(left)
    left = visit(here->left, sum / 64, level + 1);
#pragma omp task shared(right)
    right = visit(here->right, sum / 64, level + 1);
#pragma omp taskwait
    return sum + left + right;
}

int main(int argc, char **argv) {
    int depth = argc > 1 ? atoi(argv[1]) : 20, visits = argc > 2 ? atoi(argv[2]) : 6;
    double sum = 0.0;
#pragma omp parallel
#pragma omp single
    {
        cell *root = grow(depth, 0);
        for (int k = 0; k < visits; k++) sum = visit(root, 0.01, 0);
    }
    printf("checked %.3f\n", sum);
    return 0;
}
