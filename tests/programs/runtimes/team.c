/* OpenMP: one team after the other, of several sizes, then nested ones; each thread lives for a while. */
#include "live.h"

#include <omp.h>

int main(void) {
    static char byte;
    int seen = 0, sizes[] = {2, 5, 3};
    for (int i = 0; i < 3; i++) {
#pragma omp parallel num_threads(sizes[i]) reduction(+ : seen)
        {
            seen++;
            live(40);
        }
    }
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) reduction(+ : seen)
    {
#pragma omp parallel num_threads(3) reduction(+ : seen)
        {
            seen++;
            while (read(0, &byte, 1) > 0) {} /* until the input ends */
            live(150);
        }
    }
    printf("%d of %d\n", seen, omp_get_num_procs());
}
