/* Allocations from where no plain stack of functions stands above them. Ends with 0, whatever is made of them. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { BYTES = 100000, STACK = 256 * 1024 };

static ucontext_t back, other;
static char coroutine_stack[STACK], signal_stack[STACK];

static void touch(char *block) {
    if (!block) abort();
    memset(block, 1, BYTES);
    free(block);
}

static void coroutine(void) {
    touch(malloc(BYTES));
    swapcontext(&other, &back);
}

static void handler(int number) {
    (void)number;
    touch(malloc(BYTES));
}

/* A frame pointer that points nowhere, as in code that uses the register for something else. */
__attribute__((noinline)) static void wild_frame_pointer(void) {
    touch(malloc(BYTES));
#if defined __x86_64__
    __asm__ volatile("push %%rbp\n\tmov $0x10, %%rbp\n\tpop %%rbp" ::: "memory");
#endif
}

__attribute__((noinline)) static void deep(int level) {
    volatile char here[512];
    here[level % 512] = 1;
    if (level) deep(level - 1);
    else touch(malloc(BYTES));
    here[0] = here[level % 512];
}

static void *thread(void *unused) {
    deep(40);
    wild_frame_pointer();
    raise(SIGUSR1);
    return unused;
}

int main(void) {
    stack_t stack = {.ss_sp = signal_stack, .ss_size = STACK};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    pthread_t made;
    pthread_attr_t attributes;
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    getcontext(&other);
    other.uc_stack.ss_sp = coroutine_stack;
    other.uc_stack.ss_size = STACK;
    other.uc_link = &back;
    makecontext(&other, coroutine, 0);
    swapcontext(&back, &other);
    raise(SIGUSR1);
    deep(100);
    wild_frame_pointer();
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, aligned_alloc(4096, STACK), STACK);
    pthread_create(&made, &attributes, thread, NULL);
    pthread_join(made, NULL);
    if (fork() == 0) {
        touch(malloc(BYTES));
        _exit(0);
    }
    wait(NULL);
    return 0;
}
