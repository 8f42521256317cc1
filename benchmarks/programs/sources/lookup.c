/* Monte Carlo particles that look cross sections up: a search in a large grid of energies, then the rows of a few
 * nuclides, at random places. All threads read one table, which the main thread has made.
 *
 *     lookup [grid points=400000] [nuclides=40] [lookups=1000000]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHANNELS = 5, POINTS = 16384, TAKEN = 8 };

static uint64_t mixed(uint64_t value) {
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static long place_of(const double *grid, long points, double energy) {
    long low = 0, high = points;
    while (high - low > 1) {
        long middle = (low + high) / 2;
        if (grid[middle] > energy) high = middle;
        else low = middle;
    }
    return low;
}

int main(int argc, char **argv) {
    long points = argc > 1 ? atol(argv[1]) : 400000, nuclides = argc > 2 ? atol(argv[2]) : 40;
    long lookups = argc > 3 ? atol(argv[3]) : 1000000;
    double *grid = malloc(points * sizeof(double));
    int32_t *rows = malloc(points * nuclides * sizeof(int32_t));
    double (*sections)[CHANNELS] = malloc(nuclides * POINTS * sizeof(*sections));
    if (!grid || !rows || !sections) return 1;
    for (long point = 0; point < points; point++) {
        grid[point] = (double)point / points;
        for (long nuclide = 0; nuclide < nuclides; nuclide++)
            rows[point * nuclides + nuclide] = (int32_t)(grid[point] * (POINTS - 1));
    }
    for (long row = 0; row < nuclides * POINTS; row++)
        for (int channel = 0; channel < CHANNELS; channel++) sections[row][channel] = 1.0 / (channel + 1);
    double sum = 0.0;
#pragma omp parallel for schedule(dynamic, 100) reduction(+ : sum)
    for (long lookup = 0; lookup < lookups; lookup++) {
        uint64_t drawn = mixed((uint64_t)lookup + 1);
        double energy = (double)(drawn >> 11) / 9007199254740992.0;
        const int32_t *row = rows + place_of(grid, points, energy) * nuclides;
        for (int k = 0; k < TAKEN; k++) {
            long nuclide = (long)((drawn >> k) % (uint64_t)nuclides);
            const double *low = sections[nuclide * POINTS + row[nuclide]];
            for (int channel = 0; channel < CHANNELS; channel++) sum += low[channel];
        }
    }
    printf("checked %.3f\n", sum);
    return 0;
}
