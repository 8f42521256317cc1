/* Who sleeps, and who wakes whom: how many a futex call or an ending thread will send on their way.
 *
 * A thread that is woken gets in line on its own; the draw of turns must wait for it (turns.c). The waker learns how
 * many it woke when its call returns, by when some of them may be in line already: those are not waited for.
 */
#include "emulate.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROMISES 64

static int32_t futex_lock;
static struct { /* woken threads that are yet to come, by what they slept on */
    uint64_t address;
    int32_t threads;
} promises[PROMISES];

static void lock(void)
{
    while (__atomic_exchange_n(&futex_lock, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void unlock(void)
{
    __atomic_store_n(&futex_lock, 0, __ATOMIC_RELEASE);
}

void futex_forked(void)
{
    futex_lock = 0;
    memset(promises, 0, sizeof promises);
}

/* What the kernel says of a thread; empty when it is gone. */
static void read_fact(uint32_t tid, const char *fact, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/%s", tid, fact);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, room - 1);
    if (file >= 0)
        close(file);
    text[got > 0 ? got : 0] = '\0';
}

/* Whether a thread sleeps in its guest's system call, or is gone. It may sleep on a lock of QEMU's instead: that is a
 * futex call which the guest did not make. Where guest addresses are not the host's they differ by whole pages. */
bool futex_asleep(const struct thread *t)
{
    char text[512];
    long number;
    unsigned long address;
    read_fact(t->record.tid, "stat", text, sizeof text);
    const char *state = strrchr(text, ')');
    if (state == NULL || state[1] == '\0' || state[2] != 'S')
        return state == NULL || state[1] == '\0' || state[2] == 'X' || state[2] == 'Z';
    read_fact(t->record.tid, "syscall", text, sizeof text);
    if (sscanf(text, "%ld %lx", &number, &address) != 2 || number != SYS_futex)
        return strncmp(text, "running", 7) != 0;
    return t->futex_state == FUTEX_ASLEEP && ((address ^ t->futex) & 0xfff) == 0;
}

/* Whether the call may sleep; what it sleeps on, or wakes, is noted. */
bool futex_asked(struct thread *t, uint64_t address, int64_t operation, uint32_t value)
{
    int command = (int)operation & FUTEX_CMD_MASK;
    bool wakes = command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET || command == FUTEX_WAKE_OP ||
                 command == FUTEX_REQUEUE || command == FUTEX_CMP_REQUEUE;
    lock();
    t->futex_state = wakes ? FUTEX_WAKING : command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET ? FUTEX_ASLEEP
                                                                                                 : FUTEX_NONE;
    t->futex = address;
    t->futex_value = value;
    unlock();
    return !wakes;
}

/* Where an address's promises are kept; with `make` also a free place. NULL if there is none. */
static int32_t *promised(uint64_t address, bool make)
{
    int32_t *found = NULL;
    for (size_t i = 0; i < PROMISES; i++) {
        if (promises[i].threads > 0 && promises[i].address == address)
            return &promises[i].threads;
        if (make && found == NULL && promises[i].threads == 0) {
            promises[i].address = address;
            found = &promises[i].threads;
        }
    }
    return found;
}

/* Up to `most` threads that sleep on an address are on their way. */
static void promise(uint64_t address, int64_t most)
{
    int32_t asleep = 0;
    for (uint32_t slot = 0; slot < thread_slots(); slot++) {
        struct thread *t = thread_at(slot);
        if (t == NULL || t->ended || t->futex != address)
            continue;
        if (t->futex_state == FUTEX_CAME && most > 0) {
            t->futex_state = FUTEX_NONE;
            most--;
        }
        asleep += t->futex_state == FUTEX_ASLEEP;
    }
    int32_t coming = most < asleep ? (int32_t)most : asleep, *place = promised(address, true);
    if (place != NULL && coming > 0) {
        *place += coming;
        turns_await(coming);
    }
}

/* A thread that makes no further access wakes those that wait for its end: they sleep on a word that holds its id. */
void futex_ends(const struct thread *t)
{
    lock();
    for (uint32_t slot = 0; slot < thread_slots(); slot++) {
        const struct thread *other = thread_at(slot);
        if (other && !other->ended && other->futex_state == FUTEX_ASLEEP && other->futex_value == t->record.tid)
            promise(other->futex, 1);
    }
    unlock();
}

/* The call is back: whom it woke will come; or the thread was woken itself. */
void futex_answered(struct thread *t, int64_t result)
{
    lock();
    if (t->futex_state == FUTEX_WAKING && result > 0)
        promise(t->futex, result);
    bool woken = t->futex_state == FUTEX_ASLEEP && result == 0;
    t->futex_state = FUTEX_NONE;
    int32_t *place = woken ? promised(t->futex, false) : NULL;
    if (place != NULL) {
        --*place;
        t->to_come = true;
    } else if (woken) {
        t->futex_state = FUTEX_CAME;
    }
    unlock();
}
