/* Threads that load and store at random among the same lines, without libc: there are no atomics, so every
 * access is a load or a store. usage: shared_lines SEED LINES ACCESSES THREADS */
#define MOST 16
#define STACK 16384
#define CLONE_AS_THREAD 0x50f00 /* VM, FS, FILES, SIGHAND, THREAD, SYSVSEM */

static volatile char lines_of[4096 * 64] __attribute__((aligned(4096)));
static volatile long ready[MOST], done[MOST];
static char stacks[MOST][STACK] __attribute__((aligned(64)));
static unsigned long numbers[4];

static long call(long number, long a, long b) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b) : "rcx", "r11", "memory");
    return result;
}

static void await(volatile long *flags) {
    for (unsigned long i = 0; i < numbers[3]; i++)
        while (!flags[i]) __asm__ volatile("pause");
}

static void work(unsigned long thread) {
    unsigned long state = numbers[0] * 977 + thread;
    ready[thread] = 1;
    await(ready);
    for (unsigned long i = 0; i < numbers[2]; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        volatile char *place = lines_of + (state >> 33) % numbers[1] * 64;
        if (state >> 62 == 3) *place = 1;
        else (void)*place;
    }
    done[thread] = 1;
}

__attribute__((used, noreturn)) static void begin(unsigned long thread) {
    work(thread);
    for (;;) call(60, 0, 0);
}

static void start(unsigned long thread) {
    void **top = (void **)(stacks[thread] + STACK - 64);
    long made = 56;
    __asm__ volatile("syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\tmov %%rbx, %%rdi\n\tcall begin\n1:"
                     : "+a"(made)
                     : "D"(CLONE_AS_THREAD), "S"(top), "b"(thread)
                     : "rcx", "r11", "memory");
}

__attribute__((used)) static void run(long *stack) {
    for (int i = 0; i < 4 && i + 1 < stack[0]; i++)
        for (char *digit = (char *)stack[i + 2]; *digit; digit++)
            numbers[i] = numbers[i] * 10 + (unsigned long)(*digit - '0');
    for (unsigned long i = 1; i < numbers[3]; i++) start(i);
    work(0);
    await(done);
    call(231, 0, 0);
}
__asm__(".globl _start\n_start: mov %rsp, %rdi\n\tand $-16, %rsp\n\tcall run\n");
