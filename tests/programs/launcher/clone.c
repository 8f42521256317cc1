/* A thread made by clone() itself, sharing its creator's thread-local storage; waits for it by its tid's futex. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic int gone = 1, seen;
static _Alignas(16) char stack[1 << 16];

static int thread(void *argument) {
    atomic_store(&seen, *(int *)argument);
    return 0;
}

int main(void) {
    int value = 42;
    const int flags =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    if (clone(thread, stack + sizeof stack, flags, &value, NULL, NULL, &gone) < 0) return 1;
    while (atomic_load(&gone)) syscall(SYS_futex, &gone, FUTEX_WAIT, 1, NULL, NULL, 0);
    printf("%d\n", atomic_load(&seen));
    return 0;
}
