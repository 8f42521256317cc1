/* Which threads could run: looked at now and then, by who waited for a turn while another had it.
 *
 * Who waits for a turn would run if there were cpus for all; also one that only looks again and again whether another
 * is done, which makes few accesses in its turns. Looks are by chance up to twice as far apart as in the mean, or
 * they would fall into step with the program's own rhythm; twice as far after every LOOKS_APART_ALIKE, and farther from
 * when THREADS_AT_ONCE could run, so that what is written stays little.
 */
#include "emulate.h"

#define TURNS_APART 16
#define LOOKS_APART_ALIKE 1024
#define THREADS_AT_ONCE 16
#define LONGEST_TURNS 2 /* in mean ones, that a turn seldom exceeds; then the look is taken in the next one */

static int64_t due, apart;
static uint32_t looks, most;
static uint64_t chance;
static uint32_t could_run[MAX_THREADS + 1], known; /* as the turn began, if it may last until a look is due */

/* In a forked child, too: its files are its own. */
void em_running_reset(void) {
    due = 0;
    apart = TURNS_APART * (int64_t)em_options.turn;
    looks = most = known = 0;
    chance = em_options.seed * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x2345678);
}

/* A turn begins at this time of the recording, maybe while others wait; the caller has the turns' lock. All that were to
 * come have come: who comes later, maybe because the turn's thread wakes it, does so when the host lets it. */
void em_running_begin(int64_t now, const struct em_thread *holder, struct em_thread *const *waiting, uint32_t count) {
    known = 0;
    if (now + LONGEST_TURNS * (int64_t)em_options.turn < due) return;
    could_run[known++] = (uint32_t)holder->index + 1;
    for (uint32_t i = 0; i < count; i++) could_run[known++] = (uint32_t)waiting[i]->index + 1;
}

/* The turn ends. Its thread could run until now, also if it falls asleep. */
void em_running_end(int64_t now) {
    if (known == 0 || now < due) return;
    em_spool_running(UINT64_C(1) << 63, (uint64_t)now);
    for (uint32_t i = 0; i < known; i += 2) em_spool_running(could_run[i], i + 1 < known ? could_run[i + 1] : 0);
    if (++looks % LOOKS_APART_ALIKE == 0) apart *= 2;
    if (known > most) most = known;
    due = now + (int64_t)(em_next_random(&chance) % (2 * (uint64_t)apart * (1 + most / THREADS_AT_ONCE)));
    known = 0;
}
