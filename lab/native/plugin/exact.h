/*
 * A recording's exact counts: who takes which line from whom (profiler/native/transfers), and who uses which page how
 * often (profiler/native/page_uses).
 *
 * Who is a task of the guest's as long as it runs one program: its number stands for the kernel's address of it and
 * the time of its first access. A line is what it is in the machine's memory, so what processes share counts, too; a
 * page is one of the task's addresses, on a node.
 */
#ifndef NUMAPLAN_LAB_EXACT_H
#define NUMAPLAN_LAB_EXACT_H

#include "lines.h"
#include "page_uses.h"
#include "part.h"
#include "qemu_plugin.h"

#define EXACT_RECENT 64 /* pages of a vcpu whose uses are found without a search */
/* In the number of a page, as lab/recording/exact.py reads it: the node of the page, and whether the cpu is of another,
 * which is not told without caches. */
#define EXACT_NODE_SHIFT 38
#define EXACT_REMOTE_SHIFT 37
#define EXACT_NOBODY UINT32_MAX

struct lab_exact_recent {
    uint64_t number; /* + 1; 0 when empty, which other vcpus may make it */
    struct page_use *use;
};

struct lab_exact_seat {
    _Alignas(64) uint64_t task;
    uint32_t who; /* from 1 on; 0: to be asked; EXACT_NOBODY: not the program */
    uint32_t process; /* whose it is, as far as it has said so (part.h) */
    uint32_t last; /* whose lines alone the L1 has, and whose pages are in `recent` */
    struct lab_exact_recent recent[EXACT_RECENT];
};

/* What is counted; nothing before lab_exact_start. */
extern struct lab_exact_wanted {
    bool transfers, uses;
    unsigned llc_own; /* how many of the caches of several sizes are no larger than the machine's; 0: not asked */
} lab_exact;
extern struct lab_exact_seat lab_exact_seats[VCPUS_MAX];

bool lab_exact_option(const char *name, const char *value); /* false: not one of these, or not valid */
bool lab_exact_start(const char *directory, unsigned vcpus); /* false: no memory, or no file */
int lab_exact_finish(const char *directory); /* errno of what could not be written; no vcpu makes accesses */
void lab_exact_switch(unsigned vcpu, uint64_t task); /* the vcpu goes on with another task, or now excluded */
void lab_exact_told(unsigned vcpu, unsigned byte); /* something, by a process: see part.h */
void lab_exact_end_stage(unsigned vcpu); /* its task ends, or becomes another program */
void lab_exact_check(void); /* now and then: whether a stretch of time ends */

/* Before the kernel copies for the vcpu's task: whether that is counted. And then: to this line of a node (store), or
 * from it. */
bool lab_exact_copies(unsigned vcpu);
void lab_exact_buffer(unsigned vcpu, uint64_t address, uint64_t key, unsigned node, bool store,
                      const struct lab_answer *answer);

void lab_exact_overwritten(uint64_t key); /* the kernel has another use for the page of this place in memory */

/* Of tasks those that have a number, and of those that vcpus have now; how many. */
unsigned lab_exact_known(const uint64_t *tasks, unsigned count, uint32_t *who);
unsigned lab_exact_running(uint32_t *who);

void lab_exact_forget_own(unsigned vcpu); /* that the vcpu has lines to itself: counting begins */
void lab_exact_ask(unsigned vcpu);
void lab_exact_find(struct lab_exact_seat *seat, struct lab_exact_recent *recent, uint64_t number);
void lab_exact_transfer(unsigned vcpu, uint64_t address, uint64_t key, bool store, const struct lab_answer *answer);

/* How the task of a vcpu uses the page of an address, on a node. */
static inline struct page_use *lab_exact_use(unsigned vcpu, uint64_t address, unsigned node) {
    struct lab_exact_seat *seat = &lab_exact_seats[vcpu];
    uint64_t page = address >> PAGE_SHIFT, remote = lab_lines_cores[vcpu].node != node;
    uint64_t number = page | remote << EXACT_REMOTE_SHIFT | (uint64_t)node << EXACT_NODE_SHIFT;
    struct lab_exact_recent *recent = &seat->recent[(page ^ page >> 6 ^ page >> 12) % EXACT_RECENT];
    if (__builtin_expect(__atomic_load_n(&recent->number, __ATOMIC_RELAXED) != number + 1, 0))
        lab_exact_find(seat, recent, number);
    return recent->use;
}

/* Before each access by the program's code: whether it is counted. */
static inline bool lab_exact_counts(unsigned vcpu, qemu_plugin_meminfo_t info) {
    struct lab_exact_seat *seat = &lab_exact_seats[vcpu];
    if (!(lab_exact.transfers || lab_exact.uses)) return false;
    if (__builtin_expect(seat->who == 0, 0)) lab_exact_ask(vcpu);
    return seat->who != EXACT_NOBODY && lab_part_within(vcpu, seat->process, info);
}

/* And then: what answered it. */
static inline void lab_exact_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, uint64_t key,
                                    unsigned node, const struct lab_answer *answer) {
    unsigned parts = qemu_access_parts(info), rw = qemu_access_rw(info), loads = rw & 1, stores = rw >> 1;
    if (lab_exact.transfers && answer->asked) lab_exact_transfer(vcpu, address, key, stores, answer);
    if (!lab_exact.uses) return;
    struct page_use *use = lab_exact_use(vcpu, address, node);
    use->made[0] += loads * parts;
    use->made[1] += stores * parts;
    if (answer->missed)
        use->missed += lab_exact.llc_own ? answer->reach.sizes >= lab_exact.llc_own
                                         : answer->level == LEVEL_LOCAL || answer->level == LEVEL_REMOTE;
}

#endif
