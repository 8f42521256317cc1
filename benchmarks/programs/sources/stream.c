/* The four kernels of STREAM, OpenMP with a static schedule, on arrays that the main thread sets up.
 *
 *     stream [elements=4000000] [repeats=4]
 *
 * Three arrays of 32 MB: more than the last-level caches of two nodes hold, less than those of four.
 */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 4000000;
    int repeats = argc > 2 ? atoi(argv[2]) : 4;
    double *a = malloc(count * sizeof(double)), *b = malloc(count * sizeof(double)),
           *c = malloc(count * sizeof(double));
    if (!a || !b || !c) return 1;
    for (long i = 0; i < count; i++) {
        a[i] = 1.0;
        b[i] = 2.0;
        c[i] = 0.0;
    }
    for (int repeat = 0; repeat < repeats; repeat++) {
#pragma omp parallel for
        for (long i = 0; i < count; i++) c[i] = a[i];
#pragma omp parallel for
        for (long i = 0; i < count; i++) b[i] = 0.5 * c[i];
#pragma omp parallel for
        for (long i = 0; i < count; i++) c[i] = a[i] + b[i];
#pragma omp parallel for
        for (long i = 0; i < count; i++) a[i] = b[i] + 0.5 * c[i];
    }
    printf("checked %.6f\n", a[count / 2]);
    return 0;
}
