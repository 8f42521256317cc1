/* What depends on the guest's architecture: system call numbers and a little decoding.
 *
 * An architecture that is not listed works too, with a counter on every block.
 */
#include "emulate.h"

#include <string.h>

struct numbers {
    enum em_syscall_kind kind;
    int16_t x86_64, i386, generic;
};

/* clang-format off: a table */
static const struct numbers numbers[] = {
    {CALL_EXIT, 60, 1, 93},
    {CALL_EXIT_ALL, 231, 252, 94},
    {CALL_SET_AFFINITY, 203, 241, 122},
    {CALL_AFFINITY, 204, 242, 123},
    {CALL_CLONE, 56, 120, 220},
    {CALL_CLONE3, 435, 435, 435},
    {CALL_FORK, 57, 2, -1},
    {CALL_FORK, 58, 190, -1},
    {CALL_EXEC, 59, 11, 221},
    {CALL_EXEC, 322, 358, 281},
    {CALL_OPEN, 2, 5, -1},
    {CALL_OPENAT, 257, 295, 56},
    {CALL_UNMAP, 11, 91, 215},
    {CALL_ADVISE, 28, 219, 233},
    {CALL_CLOCK, 228, -1, 113},
    {CALL_FUTEX, 202, 240, 98},
    /* futex_waitv, futex_time64 */
    {CALL_LOCKS, 449, 449, 449},
    {CALL_LOCKS, -1, 422, -1},
    {CALL_YIELD, 24, 158, 124},
    /* sched_setscheduler, sched_setattr */
    {CALL_SCHEDULER, 144, 156, 119},
    {CALL_SCHEDULER, 314, 351, 274},
    /* wait4, waitpid */
    {CALL_WAIT, 61, 114, 260},
    {CALL_WAIT, -1, 7, -1},
    /* chroot, pivot_root, setns, mount, move_mount */
    {CALL_ROOT, 161, 61, 51},
    {CALL_ROOT, 155, 217, 41},
    {CALL_ROOT, 308, 346, 268},
    {CALL_ROOT, 165, 21, 40},
    {CALL_ROOT, 429, 429, 429},
    /* read, pread64, recvfrom; readv, preadv, preadv2 and recvmsg, whose lists are read where pointers have 64 bits */
    {CALL_READ, 0, 3, 63},
    {CALL_READ, 17, 180, 67},
    {CALL_READ, 45, 371, 207},
    {CALL_READ_PIECES, 19, -1, 65},
    {CALL_READ_PIECES, 295, -1, 69},
    {CALL_READ_PIECES, 327, -1, 286},
    {CALL_READ_MESSAGE, 47, -1, 212},
    /* write, pwrite64, sendto; writev, pwritev, pwritev2 and sendmsg, the same */
    {CALL_WRITE, 1, 4, 64},
    {CALL_WRITE, 18, 181, 68},
    {CALL_WRITE, 44, 369, 206},
    {CALL_WRITE_PIECES, 20, -1, 66},
    {CALL_WRITE_PIECES, 296, -1, 70},
    {CALL_WRITE_PIECES, 328, -1, 287},
    {CALL_WRITE_MESSAGE, 46, -1, 211},
    /* setuid, setuid32, setfsuid, setfsuid32 */
    {CALL_USER, 105, 23, 146},
    {CALL_USER, -1, 213, -1},
    {CALL_USER, 122, 138, 151},
    {CALL_USER, -1, 215, -1},
    /* setreuid, setreuid32, setresuid, setresuid32 */
    {CALL_USERS, 113, 70, 145},
    {CALL_USERS, -1, 203, -1},
    {CALL_USERS, 117, 164, 147},
    {CALL_USERS, -1, 208, -1},
    /* mmap, mmap2, mprotect, brk, mremap */
    {CALL_QUICK, 9, 90, 222},
    {CALL_QUICK, -1, 192, -1},
    {CALL_QUICK, 10, 125, 226},
    {CALL_QUICK, 12, 45, 214},
    {CALL_QUICK, 25, 163, 216},
    /* rt_sigaction, rt_sigprocmask, getpid, gettid, set_tid_address, set_robust_list, rseq */
    {CALL_QUICK, 13, 174, 134},
    {CALL_QUICK, 14, 175, 135},
    {CALL_QUICK, 39, 20, 172},
    {CALL_QUICK, 186, 224, 178},
    {CALL_QUICK, 218, 258, 96},
    {CALL_QUICK, 273, 311, 99},
    {CALL_QUICK, 334, 386, 293},
    /* arch_prctl, prctl, prlimit64, getrandom, getrusage, times, gettimeofday, clock_gettime */
    {CALL_QUICK, 158, 384, -1},
    {CALL_QUICK, 157, 172, 167},
    {CALL_QUICK, 302, 340, 261},
    {CALL_QUICK, 318, 355, 278},
    {CALL_QUICK, 98, 77, 165},
    {CALL_QUICK, 100, 43, 153},
    {CALL_QUICK, 96, 78, 169},
    {CALL_QUICK, -1, 265, -1},
};
/* clang-format on */

#define CALLS 512
static uint8_t kinds[CALLS];
static enum { OTHER, X86_64, I386, AARCH64, RISCV64 } target;

void em_guest_select(const char *name) {
    target = !strcmp(name, "x86_64")    ? X86_64
             : !strcmp(name, "i386")    ? I386
             : !strcmp(name, "aarch64") ? AARCH64
             : !strcmp(name, "riscv64") ? RISCV64
                                        : OTHER;
    if (target == OTHER) return;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct numbers *n = &numbers[i];
        int number = target == X86_64 ? n->x86_64 : target == I386 ? n->i386 : n->generic;
        if (number >= 0) kinds[number] = n->kind;
    }
}

/* An argument of a system call: QEMU extends the sign of those of 32 bits, and so of the upper half's addresses. */
uint64_t em_guest_argument(uint64_t given) { return target == I386 ? (uint32_t)given : given; }

enum em_syscall_kind em_guest_syscall(int64_t number) {
    return number >= 0 && number < CALLS ? kinds[number] : CALL_OTHER;
}

/* Opcodes with a ModRM byte that access memory whenever it names memory, one bit each. */
static bool one_byte_modrm(uint8_t op) {
    return (op < 0x40 && (op & 7) < 4) || op == 0x63 || op == 0x69 || op == 0x6b || op == 0x80 || op == 0x81 ||
           (op >= 0x83 && op <= 0x8b) || op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 ||
           (op >= 0xd0 && op <= 0xd3) || op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff;
}

static bool two_byte_modrm(uint8_t op) {
    return op == 0x10 || op == 0x11 || op == 0x28 || op == 0x29 || op == 0x2e || op == 0x2f ||
           (op >= 0x40 && op <= 0x4f) || (op >= 0x58 && op <= 0x5f) || op == 0x6e || op == 0x6f || op == 0x7e ||
           op == 0x7f || (op >= 0x90 && op <= 0x9f) || op == 0xaf || op == 0xb0 || op == 0xb1 || op == 0xb6 ||
           op == 0xb7 || op == 0xbe || op == 0xbf || op == 0xc0 || op == 0xc1 || op == 0xd6 || op == 0xef;
}

static bool x86_64_accesses(const uint8_t *code, size_t bytes) {
    size_t i = 0;
    while (i < bytes && (code[i] == 0x66 || code[i] == 0xf0 || code[i] == 0xf2 || code[i] == 0xf3 || code[i] == 0x64 ||
                         code[i] == 0x65 || (code[i] & 0xf0) == 0x40))
        i++;
    if (i >= bytes) return false;
    uint8_t op = code[i++];
    if ((op >= 0x50 && op <= 0x5f) || op == 0xe8 || op == 0xc3 || op == 0xc2 || op == 0xc9 || op == 0x68 || op == 0x6a)
        return true; /* the stack: push, pop, call, ret, leave */
    bool modrm = op != 0x0f && one_byte_modrm(op);
    if (op == 0x0f && i < bytes) modrm = two_byte_modrm(code[i++]);
    return modrm && i < bytes && code[i] >> 6 != 3;
}

static bool aarch64_accesses(uint32_t word) {
    bool prefetch = (word >> 30 == 3 && (word >> 22 & 3) == 2 && !(word >> 26 & 1)) || word >> 24 == 0xd8;
    return (word >> 25 & 5) == 4 && !prefetch;
}

/* Whether this instruction accesses memory each time it is executed; false when in doubt. */
bool em_guest_surely_accesses(const uint8_t *code, size_t bytes) {
    uint32_t word = 0;
    if (target == X86_64) return x86_64_accesses(code, bytes);
    if (bytes != 4) return false;
    memcpy(&word, code, 4);
    if (target == AARCH64) return aarch64_accesses(word);
    return target == RISCV64 && ((word & 0x7f) == 0x03 || (word & 0x7f) == 0x23);
}

/* Whether this instruction is one that puts its return address on the stack, or takes it from there. A call of what
 * comes next is none: it asks where it is. */
enum em_jump em_guest_jump(const uint8_t *code, size_t bytes) {
    static const uint8_t next[4];
    size_t i = 0;
    if (target != X86_64 && target != I386) return JUMP_OTHER;
    while (i < bytes && (code[i] == 0x66 || code[i] == 0xf2 || code[i] == 0xf3 || code[i] == 0x3e || code[i] == 0x64 ||
                         code[i] == 0x65 || (target == X86_64 && (code[i] & 0xf0) == 0x40)))
        i++;
    if (i < bytes && (code[i] == 0xc3 || code[i] == 0xc2)) return JUMP_RETURN;
    if (bytes - i >= 5 && code[i] == 0xe8) return memcmp(code + i + 1, next, 4) ? JUMP_CALL : JUMP_OTHER;
    return bytes - i >= 2 && code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2 ? JUMP_CALL : JUMP_OTHER;
}

/* Whether this instruction is the hint that spin loops contain. */
bool em_guest_spins(const uint8_t *code, size_t bytes) {
    static const uint8_t yield[4] = {0x3f, 0x20, 0x03, 0xd5};
    if (target == X86_64 || target == I386) return bytes == 2 && code[0] == 0xf3 && code[1] == 0x90;
    return target == AARCH64 && bytes == 4 && !memcmp(code, yield, 4);
}
