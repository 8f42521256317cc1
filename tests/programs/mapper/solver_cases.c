/* Random tasks for the solver, compiled in with sanitizers: whole and thin matrices, pins, several kinds of load. */
#include "problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 1;

static double uniform(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static int below(int bound) { return (int)(uniform() * bound); }

static double *numbers(int count, double density) {
    double *values = calloc((size_t)count + 1, sizeof *values);
    for (int i = 0; i < count; i++) values[i] = uniform() < density ? 1 + 9 * uniform() : 0;
    return values;
}

static double *symmetric(int n, double density) {
    double *cells = numbers(n * n, density);
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) cells[i * n + j] = i == j ? 0 : cells[j * n + i];
    return cells;
}

static void rows_of(struct problem *problem, const double *cells) {
    int n = problem->n;
    size_t *start = calloc((size_t)n + 1, sizeof *start), used = 0;
    int *to = malloc(((size_t)n * (size_t)n + 1) * sizeof *to);
    double *weight = malloc(((size_t)n * (size_t)n + 1) * sizeof *weight);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            if (cells[i * n + j] > 0) to[used] = j, weight[used++] = cells[i * n + j];
        start[i + 1] = used;
    }
    problem->start = start;
    problem->to = to;
    problem->weight = weight;
}

static int one_case(int number) {
    int n = number % 7 == 0 ? 1 + below(3) : number % 11 == 0 ? 200 + below(200) : 2 + below(90), k = 1 + below(6);
    int loads = 1 + (number % 3 == 0) * below(3), effort = number % 5 < 3 ? 0 : 1, few = n <= 7;
    double *cells = symmetric(n, number % 13 == 0 ? 0 : number % 2 ? 0.9 : 4.0 / n), *cost = symmetric(k, 1);
    struct problem problem = {
        .n = n, .k = k, .loads = loads, .effort = effort, .tolerance = 0.05, .seed = (uint64_t)number};
    for (int x = 0; x < k * k; x++) cost[x] = x % (k + 1) == 0 ? number % 4 == 0 : number % 4 == 0 ? cost[x] : 1;
    problem.cost = cost;
    problem.load = numbers(n * loads, number % 6 ? 1 : 0.3);
    problem.target = number % 2 ? numbers(k * loads, 1) : NULL;
    problem.base = number % 5 == 0 ? numbers(k * loads, 1) : NULL;
    problem.slack = number % 3 ? NULL : numbers(loads, 0.5);
    problem.extra = number % 5 == 0 ? numbers(k * n, 0.7) : NULL;
    if (number % 4 < 2 || few) problem.cells = cells;
    else rows_of(&problem, cells);
    int *start = malloc(2 * (size_t)n * sizeof *start), *node = malloc((size_t)n * sizeof *node);
    int sizes[6] = {0}, found[6] = {0}, wrong = 0;
    double tolerance;
    for (int i = 0; i < n; i++) sizes[start[i] = number % 9 == 0 ? i * i % k : i % k]++;
    for (int i = 0; i < n; i++) start[n + i] = start[n - 1 - i];
    if (numaplan_solve(&problem, 2, start, node, &tolerance) != 0) wrong = 1;
    for (int i = 0; !wrong && i < n; i++) found[node[i]]++;
    wrong |= memcmp(sizes, found, sizeof sizes) != 0;
    if (few && numaplan_exact(&problem, sizes, 100000, node) < 0) wrong = 1;
    memset(found, 0, sizeof found);
    for (int i = 0; i < n; i++) found[node[i]]++;
    wrong |= memcmp(sizes, found, sizeof sizes) != 0;
    if (wrong) printf("case %d: n %d k %d\n", number, n, k);
    free(cells), free(cost), free(start), free(node);
    const void *given[] = {problem.load,  problem.target, problem.base, problem.slack,
                           problem.extra, problem.start,  problem.to,   problem.weight};
    for (size_t g = 0; g < sizeof given / sizeof *given; g++) free((void *)given[g]);
    return wrong;
}

int main(int argc, char **argv) {
    int wrong = 0, cases = argc > 1 ? atoi(argv[1]) : 100;
    for (int number = 1; number <= cases; number++) wrong += one_case(number);
    printf("%d cases, %d wrong\n", cases, wrong);
    return wrong != 0;
}
