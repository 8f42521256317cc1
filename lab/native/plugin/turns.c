#include "turns.h"

#include "exact.h"
#include "recording.h"
#include "running.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHORT_NS = 100000 }; /* the least that the kernel takes */

/* As <linux/sched/types.h> has it, which older headers lack. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

struct lab_turn lab_turns[VCPUS_MAX];

static uint64_t length = 1000;

bool lab_turns_option(const char *name, const char *value) {
    return !strcmp(name, "turn") && (length = strtoull(value, NULL, 10)) > 0;
}

/* Who gives up a cpu gives up the rest of its slice (Linux 6.18). Of a usual one that is so much that a busy thread of
 * another program would have all but 2 % of the cpu. Linux before 6.12 knows no slices of a thread's own. */
static void shorten_slices(void) {
    struct attributes own = {.size = sizeof own};
    if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) || own.policy != SCHED_OTHER) return;
    own.runtime = SHORT_NS;
    (void)!syscall(SYS_sched_setattr, 0, &own, 0);
}

void lab_turns_pass(unsigned vcpu) {
    struct lab_turn *turn = &lab_turns[vcpu];
    if (!turn->random) {
        shorten_slices();
        turn->random = vcpu + 1;
    }
    /* An eighth shorter or longer, so that no loop of the program keeps step with it. */
    turn->left = (int64_t)(length - length / 8 + lab_random(&turn->random) % (length / 4 + 1));
    if (lab_recording) {
        lab_exact_check();
        lab_running_check();
    }
    sched_yield();
}
