/* Each kind of instruction on a page of its own, a known number of times: kind k works at BASE + k * 64 KiB.
 *
 * usage: access_kinds TIMES [THREADS [SIGNALS]]: thread t (from 0) is t * 4 MiB further on; with SIGNALS a timer
 * interrupts them all the while, whose handler writes to the thread's last page.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

#define BASE 0x100000000000
#define KIND (64l << 10)
#define THREAD (4l << 20)

static long times;
static __thread char *own;

#define AGAIN(...)                                                      \
    do {                                                                \
        for (long i = 0; i < times; i++) __asm__ volatile(__VA_ARGS__); \
        place += KIND;                                                  \
    } while (0)

static void *every_kind(void *start) {
    char *place = start;
    own = start;
    /* clang-format off: a line an instruction */
    AGAIN("movb (%0), %%al" ::"r"(place) : "rax", "memory");
    AGAIN("movw (%0), %%ax" ::"r"(place) : "rax", "memory");
    AGAIN("movl (%0), %%eax" ::"r"(place) : "rax", "memory");
    AGAIN("movq 60(%0), %%rax" ::"r"(place) : "rax", "memory"); /* across two lines */
    AGAIN("movb %%al, (%0)" ::"r"(place) : "memory");
    AGAIN("movnti %%rax, (%0)" ::"r"(place) : "memory");
    AGAIN("addq %%rax, (%0)" ::"r"(place) : "memory", "cc");
    AGAIN("lock xaddq %%rax, (%0)" ::"r"(place) : "rax", "memory", "cc");
    AGAIN("xchgq %%rax, (%0)" ::"r"(place) : "rax", "memory");
    AGAIN("lock cmpxchgq %%rcx, (%0)" ::"r"(place) : "rax", "memory", "cc");
    AGAIN("movsd (%0), %%xmm0" ::"r"(place) : "xmm0", "memory");
    AGAIN("movups (%0), %%xmm0" ::"r"(place) : "xmm0", "memory");
    AGAIN("movups %%xmm0, (%0)" ::"r"(place) : "memory");
    AGAIN("vmovups (%0), %%ymm0" ::"r"(place) : "xmm0", "memory");
    AGAIN("vmovups %%ymm0, (%0)" ::"r"(place) : "memory");
    AGAIN("movq %0, %%rsi; lea 4096(%0), %%rdi; mov $5, %%ecx; rep movsb" ::"r"(place) : "rsi", "rdi", "rcx", "memory");
    AGAIN("movq %0, %%rdi; mov $3, %%ecx; rep stosq" ::"r"(place) : "rdi", "rcx", "memory");
    AGAIN("mov %%rsp, %%r11; lea 4096(%0), %%rsp; push %%rax; push %%rax; pop %%rax; mov %%r11, %%rsp" ::"r"(
              place) : "rax",
          "r11", "memory");
    AGAIN("prefetcht0 (%0)" ::"r"(place) : "memory");
    AGAIN("lea 8(%0), %%rax" ::"r"(place) : "rax");
    /* clang-format on */
    return NULL;
}

static void on_timer(int number) {
    (void)number;
    if (own) *(volatile char *)(own + THREAD - 64) += 1;
}

int main(int argc, char **argv) {
    long threads = argc > 2 ? atol(argv[2]) : 1;
    times = argc > 1 ? atol(argv[1]) : 1;
    char *area = mmap((void *)BASE, 64l << 30, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
    if (area != (void *)BASE || threads > 64) return 99;
    if (argc > 3) {
        /* A handler on the stack that push works on would spoil the count: one of its own. */
        struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART | SA_ONSTACK};
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 500}, {0, 500}}, NULL);
    }
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* the others' stacks are where they push */
    pthread_t others[64];
    for (long i = 1; i < threads; i++) pthread_create(&others[i], NULL, every_kind, area + i * THREAD);
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    every_kind(area);
    for (long i = 1; i < threads; i++) pthread_join(others[i], NULL);
    return 0;
}
