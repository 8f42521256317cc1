/* Whose turn it is.
 *
 * Guest threads take turns of about `turn` accesses, or a fourth of that, the next one drawn at random from those
 * that wait, so that sharing shows even where the host has fewer cpus than the program threads. For a while a thread's
 * turns are shorter or longer than that, by up to an eighth. A guest runs in its turn alone.
 *
 * The order is the program's own, not the host's: a turn is drawn only once every thread that must come has come.
 * Those are threads just made, and threads that a futex call woke (`coming`); and a thread in a system call is
 * waited for until it is back, or seen asleep in it (`entering`). So two runs draw from the same threads, as long as
 * it is they who wake each other, and not a clock, a signal or another process.
 *
 * QEMU now and then stops all threads at the end of their translated blocks (fork, full code buffer). The
 * thread that has the turn may be stopped so while others wait here in the middle of a block, and QEMU waits
 * for those. Hence a wait in which nothing moves ends after a while, and the access is put aside (`late`)
 * until its thread does get the turn: no access is lost and the state is still touched by one thread only.
 * A thread that only waits for a cpu of the host's will move, so it is waited for; and how long was waited is
 * counted by the waiting thread's own looks: the time in which all were stopped does not count.
 */
#include "emulate.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STALLED_NS 20000000
#define LOST_NS 300000000 /* until those that were to come are not waited for any more */
#define WATCH_NS 20000 /* between looks at a thread that may fall asleep */
#define CONTENDED 256 /* accesses, of which more than one takes a line from another core: turns become short */
#define STILL_CONTENDED 96 /* the same, while they are */
#define SHORTER 4          /* times */
#define ENOUGH 8           /* turns of usual length, that tell it, */
#define LATELY 64          /* and the most that count in full */
#define USUAL_PACE 128       /* of a thread: its turns are as long as usual */
#define PACE_APART 16        /* from that, at most */
#define TURNS_AT_A_PACE 2048 /* in the mean */
#define LATE_LIMIT (1u << 16)
#define LATE_BURST 512 /* accesses to put aside before waiting again */

enum { GO_WAIT, GO_RUN, GO_WATCH };

static struct {
    int32_t lock; /* 0 free, 1 taken, 2 taken and waited for */
    struct em_thread *holder;
    struct em_thread *waiting[MAX_THREADS]; /* by birth */
    uint32_t count;
    int32_t coming;          /* threads that will get in line */
    struct em_thread *entering; /* in a system call, and not yet seen asleep in it */
    struct em_thread *passer;   /* gave its turn to another: is not drawn if anybody else can be */
    uint64_t turns, random;
    uint64_t taken, done; /* lines from other cores lately, and accesses: touched by who has the turn */
    bool brief;           /* turns are short now */
    uint32_t recordings; /* that were begun or ended: who waits since before waits in vain */
} token;

static long futex(int32_t *word, int operation, int32_t value, const struct timespec *timeout) {
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

static void lock(void) {
    int32_t seen = 0;
    if (__atomic_compare_exchange_n(&token.lock, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    while (__atomic_exchange_n(&token.lock, 2, __ATOMIC_ACQUIRE) != 0) futex(&token.lock, FUTEX_WAIT, 2, NULL);
}

static void unlock(void) {
    if (__atomic_exchange_n(&token.lock, 0, __ATOMIC_RELEASE) == 2) futex(&token.lock, FUTEX_WAKE, 1, NULL);
}

/* In a forked child, and at the start: nobody has the turn, nobody waits. Time goes on from where it was (clock.c). */
void em_turns_reset(void) {
    token.lock = 0;
    token.holder = token.entering = token.passer = NULL;
    token.count = 0;
    token.coming = 0;
    token.taken = token.done = token.brief = 0;
    token.random = em_options.seed * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x1234567);
    em_running_reset();
}

/* Nobody has the turn or waits for one, as a recording is paused or goes on; no guest thread runs, but some may be
 * here on their way into or out of a system call. */
void em_turns_stop(void) {
    lock();
    if (token.holder != NULL) em_clock_advance(token.holder->turn_base + token.holder->position);
    token.holder = token.entering = token.passer = NULL;
    token.count = 0;
    token.coming = 0;
    token.taken = token.done = token.brief = 0;
    __atomic_fetch_add(&token.recordings, 1, __ATOMIC_RELAXED);
    unlock();
}

/* Whether another thread waits, or is about to. */
bool em_turn_wanted(void) {
    return __atomic_load_n(&token.count, __ATOMIC_RELAXED) || __atomic_load_n(&token.coming, __ATOMIC_RELAXED) > 0;
}

/* What was done of the turn is told; the next time only what comes after. */
static void count_turn(struct em_thread *t) {
    em_part_took(t->turn_given - t->turn_left);
    t->turn_given = t->turn_left;
}

/* How long turns are now, in the mean. What several threads write all the time is taken once in a turn by each, and on a
 * machine with each write: while many lines are taken from others, all have short turns. In these each such line is
 * taken more often, so that one alone would keep them short: that takes a larger part of the accesses. */
static uint64_t length_of_turns(struct em_thread *t) {
    if (!em_options.fair || !em_options.cached || em_options.turn < SHORTER) return em_options.turn;
    uint64_t taken = t->record.caches.coherence;
    token.taken += taken - t->turn_taken;
    token.done += t->turn_length > t->turn_left ? (uint64_t)(t->turn_length - t->turn_left) : 0;
    t->turn_taken = taken;
    if (token.done > LATELY * em_options.turn) {
        token.taken /= 2;
        token.done /= 2;
    }
    if (token.done >= ENOUGH * em_options.turn)
        token.brief = token.taken * (token.brief ? STILL_CONTENDED : CONTENDED) > token.done;
    return token.brief ? em_options.turn / SHORTER : em_options.turn;
}

/* The same for this thread, now: no two run equally fast for long, on a machine. Else threads that do equal work would
 * stay in step, so that who takes the next piece of it is the same in each round. */
static uint64_t length_at_pace(struct em_thread *t) {
    uint64_t length = length_of_turns(t);
    if (!em_options.fair) return length;
    if (t->pace_left-- == 0) {
        t->pace = USUAL_PACE - PACE_APART + em_next_random(&t->random) % (2 * PACE_APART + 1);
        t->pace_left = TURNS_AT_A_PACE / 2 + em_next_random(&t->random) % TURNS_AT_A_PACE;
    }
    return length * t->pace / USUAL_PACE;
}

static void begin(struct em_thread *t) {
    int64_t now = em_options.fair ? em_clock_last() : em_host_ns(), last = t->turn_base + t->position;
    t->turn_base = (em_options.fair || now > last ? now : last) + 1;
    t->position = 0;
    if (t->record.start_ns < 0) t->record.start_ns = t->turn_base;
    t->block_open = false;
    t->holding = true;
    /* Turns of equal length would fall into step with the program's own rhythm. */
    uint64_t length = length_at_pace(t);
    t->turn_left = (int64_t)(length / 2 + em_next_random(&t->random) % (length + 1)) + 1;
    if (t->turn_left > em_part_room()) t->turn_left = em_part_room();
    t->turn_given = t->turn_length = t->turn_left;
}

/* With the lock. */
static void finish(struct em_thread *t) {
    t->holding = false;
    count_turn(t);
    em_clock_advance(t->turn_base + t->position);
    em_running_end(em_clock_last());
}

static void leave_line(uint32_t place) {
    memmove(&token.waiting[place], &token.waiting[place + 1], (--token.count - place) * sizeof token.waiting[0]);
}

static void get_in_line(struct em_thread *t) {
    uint32_t place = token.count++;
    for (; place > 0 && token.waiting[place - 1]->record.birth > t->record.birth; place--)
        token.waiting[place] = token.waiting[place - 1];
    token.waiting[place] = t;
}

/* Give the turn to one of those that wait, if nobody has it and all have come: at random, but for the one that had
 * it and for spinning ones, if three draws meet another. The thread to notify, or NULL. */
static struct em_thread *draw(void) {
    uint32_t place = 0;
    if (token.holder != NULL || token.entering != NULL || token.coming > 0 || token.count == 0) return NULL;
    for (int draws = 0; draws < 3 && token.count > 1; draws++) {
        place = (uint32_t)(em_next_random(&token.random) % token.count);
        if (token.waiting[place] == token.passer) place = (place + 1) % token.count;
        if (!token.waiting[place]->spinning) break;
    }
    struct em_thread *next = token.waiting[place];
    leave_line(place);
    token.passer = NULL;
    token.holder = next;
    token.turns++;
    em_running_begin(em_clock_last(), next, token.waiting, token.count);
    return next;
}

static void tell_drawn(struct em_thread *next) {
    if (next == NULL) return;
    __atomic_store_n(&next->go, GO_RUN, __ATOMIC_RELEASE);
    futex(&next->go, FUTEX_WAKE, 1, NULL);
}

/* For one of those that wait: look whether the thread that the draw waits for has fallen asleep. */
static void watch(void) {
    lock();
    struct em_thread *watched = token.entering;
    uint64_t turns = token.turns;
    unlock();
    if (watched == NULL || !em_thread_asleep(watched)) return;
    struct em_thread *next = NULL;
    lock();
    if (token.entering == watched && token.turns == turns) {
        token.entering = NULL;
        next = draw();
    }
    unlock();
    tell_drawn(next);
}

/* Nothing has moved for long. Where a draw was waited for: draw. Else leave the line, unless the turn was given in
 * this very moment; true if left. */
static bool stalled(struct em_thread *t, uint64_t turns, int64_t waited_ns) {
    bool left = false;
    struct em_thread *next = NULL;
    lock();
    struct em_thread *moves = token.holder != NULL ? token.holder : token.entering;
    if (token.turns == turns && moves != NULL && moves != t && em_thread_runs(moves)) {
        /* It has no cpu on a busy host, or was stopped. */
    } else if (token.turns == turns && token.holder == NULL && waited_ns < LOST_NS) {
        /* A thread that starts or wakes on a busy host. */
    } else if (token.turns == turns && token.holder == NULL) {
        token.entering = NULL;
        token.coming = 0;
        next = draw();
    } else if (token.turns == turns && token.holder != t && t->late_count < LATE_LIMIT) {
        for (uint32_t i = 0; i < token.count && !left; i++)
            if ((left = token.waiting[i] == t)) leave_line(i);
    }
    unlock();
    tell_drawn(next);
    return left;
}

/* Wait to be given the turn; false when nothing has moved for STALLED_NS. */
static bool wait_for_turn(struct em_thread *t, uint32_t recording) {
    const struct timespec slice = {0, STALLED_NS}, moment = {0, WATCH_NS};
    uint64_t turns = __atomic_load_n(&token.turns, __ATOMIC_RELAXED);
    int64_t looked = em_host_ns(), waited = 0;
    for (int32_t go; (go = __atomic_load_n(&t->go, __ATOMIC_ACQUIRE)) != GO_RUN;) {
        if (__atomic_load_n(&token.recordings, __ATOMIC_RELAXED) != recording) return false;
        struct em_thread *watched = __atomic_load_n(&token.entering, __ATOMIC_RELAXED);
        if (go == GO_WATCH && watched != NULL) watch();
        else if (go == GO_WATCH)
            __atomic_compare_exchange_n(&t->go, &go, GO_WAIT, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
        if (__atomic_load_n(&t->go, __ATOMIC_ACQUIRE) == go)
            futex(&t->go, FUTEX_WAIT, go, go == GO_WATCH ? &moment : &slice);
        uint64_t now = __atomic_load_n(&token.turns, __ATOMIC_RELAXED);
        int64_t before = looked;
        looked = em_host_ns();
        waited += looked - before < STALLED_NS ? looked - before : STALLED_NS;
        if (now != turns) {
            turns = now;
            waited = 0;
        } else if (waited >= STALLED_NS && stalled(t, turns, waited)) {
            return false;
        }
    }
    __atomic_store_n(&t->go, GO_WAIT, __ATOMIC_RELAXED);
    t->spinning = false;
    if (__atomic_load_n(&token.recordings, __ATOMIC_RELAXED) != recording) return false;
    begin(t);
    return true;
}

/* One of those that wait is to look whether the watched thread falls asleep. */
static void tell_watcher(struct em_thread *t) {
    int32_t waits = GO_WAIT;
    if (t != NULL && __atomic_compare_exchange_n(&t->go, &waits, GO_WATCH, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        futex(&t->go, FUTEX_WAKE, 1, NULL);
}

/* The first in line looks after the thread that is waited for; the lock is held. */
static struct em_thread *watcher(void) { return token.entering != NULL && token.count > 0 ? token.waiting[0] : NULL; }

/* Get in line and wait for the turn. `came`: it was one of those that were to come. */
static bool turn_get(struct em_thread *t, bool came) {
    lock();
    if (token.entering == t) token.entering = NULL;
    token.coming -= came && token.coming > 0;
    get_in_line(t);
    struct em_thread *next = draw(), *looks = next ? NULL : watcher();
    uint32_t recording = token.recordings;
    unlock();
    if (next != t) tell_drawn(next);
    else __atomic_store_n(&t->go, GO_RUN, __ATOMIC_RELAXED);
    tell_watcher(looks);
    return wait_for_turn(t, recording);
}

/* Get the turn; false when the access must be put aside: after a stall, or soon after one unless `patient`. */
bool em_turn_take(struct em_thread *t, bool patient) {
    bool came = t->to_come;
    if (!em_options.fair) {
        begin(t);
        return true;
    }
    if (!came && !patient && t->late_count % LATE_BURST && __atomic_load_n(&token.holder, __ATOMIC_RELAXED) != NULL)
        return false;
    t->to_come = false;
    return turn_get(t, came);
}

/* The turn is used up: let another thread go first if one waits. False as for em_turn_take. */
bool em_turn_pass(struct em_thread *t) {
    if (!em_options.fair) {
        count_turn(t);
        begin(t);
        return true;
    }
    /* Threads that come back from system calls need the cpu that we are pinned to, to get in line at all. */
    if (!em_turn_wanted() && !em_threads_alone()) sched_yield();
    lock();
    finish(t);
    if (token.count == 0 && token.coming <= 0) {
        token.turns++;
        em_running_begin(em_clock_last(), t, NULL, 0);
        begin(t);
        unlock();
        return true;
    }
    token.holder = NULL;
    token.passer = t;
    unlock();
    return turn_get(t, false);
}

/* Give the turn up without waiting for it again: `entering` a system call from which the thread may be back at
 * once, or for good. */
void em_turn_release(struct em_thread *t, bool entering) {
    if (!t->holding) return;
    if (!em_options.fair) {
        count_turn(t);
        t->holding = false;
        return;
    }
    lock();
    finish(t);
    token.turns++;
    token.holder = NULL;
    token.entering = entering && em_turn_wanted() ? t : NULL;
    struct em_thread *next = draw(), *looks = watcher();
    unlock();
    tell_drawn(next);
    tell_watcher(looks);
}

/* So many threads will get in line, whom the holder of the turn made or woke. */
void em_turns_await(int32_t threads) {
    lock();
    token.coming += threads;
    unlock();
}
