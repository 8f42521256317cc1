/* Which threads could run: looked at now and then, as a turn is given to one of those that wait for it.
 *
 * Who waits for a turn would run if there were cpus for all; also one that only looks again and again whether another
 * is done, which makes few accesses in its turns. Looks are evenly apart at first, twice as far after every
 * LOOKS_APART_ALIKE, and farther where more than THREADS_AT_ONCE wait, so that what is written stays little.
 */
#include "emulate.h"

#define TURNS_APART 16
#define LOOKS_APART_ALIKE 1024
#define THREADS_AT_ONCE 16

static int64_t due, apart;
static uint32_t looks;

/* In a forked child, too: its files are its own. */
void em_running_reset(void) {
    due = 0;
    apart = TURNS_APART * (int64_t)em_options.turn;
    looks = 0;
}

static void put(const struct em_thread *one, const struct em_thread *other) {
    em_spool_running((uint64_t)one->index + 1, other ? (uint64_t)other->index + 1 : 0);
}

/* One thread is given the turn and others wait, at this time of the recording; the caller has the turns' lock. */
void em_running_look(int64_t now, const struct em_thread *drawn, struct em_thread *const *waiting, uint32_t count) {
    if (now < due) return;
    em_spool_running(UINT64_C(1) << 63, (uint64_t)now);
    put(drawn, count > 0 ? waiting[0] : NULL);
    for (uint32_t i = 1; i < count; i += 2) put(waiting[i], i + 1 < count ? waiting[i + 1] : NULL);
    if (++looks % LOOKS_APART_ALIKE == 0) apart *= 2;
    due = now + apart * (1 + count / THREADS_AT_ONCE);
}
