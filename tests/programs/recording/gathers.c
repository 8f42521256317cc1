/* Gather by indices in vector register 4, as numpy does to sort: where the processor has AVX2, or ("always") anyway. */
#include <stdio.h>

static const long table[8] = {10, 11, 12, 13, 14, 15, 16, 17};
static const long wanted[4] = {7, 2, 5, 1};

__attribute__((target("avx2"))) static void gather(long *to) {
    __asm__ volatile("vmovdqu %1, %%ymm4\n\t"
                     "vpcmpeqd %%ymm5, %%ymm5, %%ymm5\n\t"
                     "vpgatherqq %%ymm5, (%2, %%ymm4, 8), %%ymm6\n\t"
                     "vmovdqu %%ymm6, %0"
                     : "=m"(*(long (*)[4])to)
                     : "m"(wanted), "r"(table), "m"(table)
                     : "xmm4", "xmm5", "xmm6");
}

int main(int argc, char **argv) {
    long got[4];
    (void)argv;
    if (argc > 1 || __builtin_cpu_supports("avx2")) gather(got);
    else
        for (int i = 0; i < 4; i++) got[i] = table[wanted[i]];
    printf("%ld %ld %ld %ld\n", got[0], got[1], got[2], got[3]);
    return 0;
}
