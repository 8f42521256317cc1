/* A program of 32 bits, without a library, that lets the kernel fill four pages above 2 GiB, and uses none of them. */
enum { EXIT = 1, READ = 3, OPEN = 5, MMAP = 192, BYTES = 4 << 12, FIXED_PRIVATE_ANONYMOUS = 0x32, READ_WRITE = 3 };

static long call(long number, long a, long b, long c, long d) {
    long result;
    __asm__ volatile("push %%ebp\n\txor %%ebp, %%ebp\n\tint $0x80\n\tpop %%ebp"
                     : "=a"(result)
                     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(-1)
                     : "memory");
    return result;
}

void _start(void) {
    long memory = call(MMAP, (long)0xb0000000, BYTES, READ_WRITE, FIXED_PRIVATE_ANONYMOUS);
    long zeros = call(OPEN, (long)"/dev/zero", 0, 0, 0);
    call(EXIT, call(READ, zeros, memory, BYTES, 0) != BYTES, 0, 0, 0);
}
