/* Whose turn it is.
 *
 * Guest threads take turns of some `turn` accesses, the next one drawn at random from those that wait, so
 * that sharing shows even where the host has fewer cpus than the program threads. A thread has no turn
 * while it is in a system call.
 *
 * QEMU now and then stops all threads at the end of their translated blocks (fork, full code buffer). The
 * thread that has the turn may be stopped so while others wait here in the middle of a block, and QEMU waits
 * for those. Hence a wait in which nothing moves ends after a while, and the access is put aside (`late`)
 * until its thread does get the turn: no access is lost and the state is still touched by one thread only.
 */
#include "emulate.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STALLED_NS 20000000
#define LATE_LIMIT (1u << 16)
#define LATE_BURST 512 /* accesses to put aside before waiting again */

static struct {
    int32_t lock; /* 0 free, 1 taken, 2 taken and waited for */
    struct thread *holder;
    struct thread *waiting[MAX_THREADS];
    uint32_t count;
    uint64_t turns, random;
    int64_t last_time;
} token;

static long futex(int32_t *word, int operation, int32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

static void lock(void)
{
    int32_t seen = 0;
    if (__atomic_compare_exchange_n(&token.lock, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&token.lock, 2, __ATOMIC_ACQUIRE) != 0)
        futex(&token.lock, FUTEX_WAIT, 2, NULL);
}

static void unlock(void)
{
    if (__atomic_exchange_n(&token.lock, 0, __ATOMIC_RELEASE) == 2)
        futex(&token.lock, FUTEX_WAKE, 1, NULL);
}

/* In a forked child, and at the start: nobody has the turn, nobody waits. Time goes on from where it was. */
void turns_reset(void)
{
    token.lock = 0;
    token.holder = NULL;
    token.count = 0;
    token.random = options.seed * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x1234567);
}

/* The time of the last turn's end. */
int64_t turns_last(void)
{
    return __atomic_load_n(&token.last_time, __ATOMIC_RELAXED);
}

bool turn_wanted(void)
{
    return __atomic_load_n(&token.count, __ATOMIC_RELAXED) != 0;
}

static void begin(struct thread *t)
{
    int64_t now = options.fair ? token.last_time : host_ns(), last = t->turn_base + t->position;
    t->turn_base = (options.fair || now > last ? now : last) + 1;
    t->position = 0;
    if (t->record.start_ns < 0)
        t->record.start_ns = t->turn_base;
    t->block_open = false;
    t->holding = true;
    /* Turns of equal length would fall into step with the program's own rhythm. */
    t->turn_left = (int64_t)(options.turn / 2 + next_random(&t->random) % (options.turn + 1)) + 1;
}

static void finish(struct thread *t)
{
    t->holding = false;
    __atomic_store_n(&token.last_time, t->turn_base + t->position, __ATOMIC_RELAXED);
    spool_time(token.last_time);
}

/* Draw the next thread from those that wait; a spinning one only if three draws meet no other. */
static struct thread *draw(void)
{
    uint32_t place = 0;
    if (token.count == 0)
        return NULL;
    for (int draws = 0; draws < 3; draws++) {
        place = (uint32_t)(next_random(&token.random) % token.count);
        if (!token.waiting[place]->spinning)
            break;
    }
    struct thread *next = token.waiting[place];
    token.waiting[place] = token.waiting[--token.count];
    return next;
}

static void hand_over(struct thread *next)
{
    __atomic_store_n(&next->go, 1, __ATOMIC_RELEASE);
    futex(&next->go, FUTEX_WAKE, 1, NULL);
}

/* Leave the queue unless the turn was handed over in this very moment; true if it was. */
static bool give_up(struct thread *t)
{
    lock();
    bool handed = __atomic_load_n(&t->go, __ATOMIC_ACQUIRE) != 0 || token.holder == t;
    if (!handed) {
        for (uint32_t i = 0; i < token.count; i++)
            if (token.waiting[i] == t) {
                token.waiting[i] = token.waiting[--token.count];
                break;
            }
    }
    unlock();
    return handed;
}

/* Wait to be handed the turn; false when nothing has moved for STALLED_NS. */
static bool wait_for_turn(struct thread *t)
{
    const struct timespec slice = {0, STALLED_NS};
    uint64_t turns = __atomic_load_n(&token.turns, __ATOMIC_RELAXED);
    while (__atomic_load_n(&t->go, __ATOMIC_ACQUIRE) == 0) {
        if (futex(&t->go, FUTEX_WAIT, 0, &slice) == 0 || errno != ETIMEDOUT)
            continue;
        uint64_t now = __atomic_load_n(&token.turns, __ATOMIC_RELAXED);
        if (now == turns && t->late_count < LATE_LIMIT && !give_up(t))
            return false;
        turns = now;
    }
    __atomic_store_n(&t->go, 0, __ATOMIC_RELAXED);
    t->spinning = false;
    begin(t);
    return true;
}

/* Get the turn; false when the access must be put aside: after a stall, or soon after one unless `patient`. */
bool turn_take(struct thread *t, bool patient)
{
    if (!options.fair) {
        begin(t);
        return true;
    }
    lock();
    token.turns++;
    if (token.holder != NULL && !patient && t->late_count % LATE_BURST) {
        unlock();
        return false;
    }
    if (token.holder == NULL) {
        token.holder = t;
        t->spinning = false;
        begin(t);
        unlock();
        return true;
    }
    token.waiting[token.count++] = t;
    unlock();
    return wait_for_turn(t);
}

/* The turn is used up: let another thread go first if one waits. False as for turn_take. */
bool turn_pass(struct thread *t)
{
    if (!options.fair) {
        begin(t);
        return true;
    }
    /* Threads that come back from system calls need the cpu that we are pinned to, to get in line at all. */
    if (!turn_wanted() && !threads_alone())
        sched_yield();
    lock();
    token.turns++;
    finish(t);
    struct thread *next = draw();
    if (next == NULL) {
        begin(t);
        unlock();
        return true;
    }
    token.waiting[token.count++] = t;
    token.holder = next;
    unlock();
    hand_over(next);
    return wait_for_turn(t);
}

/* Give the turn up without waiting for it again: at system calls, in spin loops, at a thread's end. */
void turn_release(struct thread *t)
{
    if (!t->holding)
        return;
    if (!options.fair) {
        t->holding = false;
        return;
    }
    lock();
    token.turns++;
    finish(t);
    struct thread *next = token.holder = draw();
    unlock();
    if (next != NULL)
        hand_over(next);
}
