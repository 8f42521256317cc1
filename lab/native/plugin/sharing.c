#include "sharing.h"

#include "sampling.h"

#define STRETCH_NS UINT64_C(100000000) /* many time slices of the guest's scheduler, also on a crowded host */
#define TASKS_MAX 16u                  /* with accesses in one stretch; further ones are taken for the last */

struct made { /* accesses, and those of them that did not only wait (polls.h) */
    uint64_t all, work;
};

static struct stretch {
    _Alignas(64) uint64_t start_ns, busy_ns;
    uint64_t segment_ns; /* when the running task came, and what it had made by then */
    struct made segment;
    struct {
        struct lab_row *row;
        struct made made;
    } tasks[TASKS_MAX];
    unsigned used;
} stretches[VCPUS_MAX];

static struct made made_by(const struct lab_row *row) {
    uint64_t all = 0, polls = 0;
    for (unsigned node = 0; node <= NODES_MAX; node++) all += row->accesses[node], polls += row->polls[node];
    return (struct made){all, polls < all ? all - polls : 0};
}

static struct made since(struct made before, struct made now) {
    if (now.all < before.all) return now; /* the counts were cleared meanwhile */
    return (struct made){now.all - before.all, now.work > before.work ? now.work - before.work : 0};
}

static void count(struct stretch *stretch, struct lab_row *row, struct made made) {
    unsigned at = 0;
    while (at < stretch->used && stretch->tasks[at].row != row) at++;
    if (at == TASKS_MAX) at--;
    if (at == stretch->used) {
        stretch->used++;
        stretch->tasks[at].row = row;
        stretch->tasks[at].made = (struct made){0, 0};
    }
    stretch->tasks[at].made.all += made.all;
    stretch->tasks[at].made.work += made.work;
}

static void book(struct stretch *stretch, uint64_t now) {
    uint64_t length = now > stretch->start_ns ? now - stretch->start_ns : 1;
    double busy = stretch->busy_ns < length ? (double)stretch->busy_ns / (double)length : 1.0;
    for (unsigned i = 0; i < stretch->used; i++) {
        uint64_t waited = 0, own = stretch->tasks[i].made.work;
        for (unsigned j = 0; j < stretch->used; j++)
            if (j != i) waited += stretch->tasks[j].made.all < own ? stretch->tasks[j].made.all : own;
        stretch->tasks[i].row->lines->waited += (uint64_t)(busy * (double)waited);
    }
    stretch->start_ns = now;
    stretch->busy_ns = 0;
    stretch->used = 0;
}

void lab_sharing_leave(unsigned vcpu) {
    struct stretch *stretch = &stretches[vcpu];
    struct lab_row *row = lab_rows_current[vcpu];
    struct made made = since(stretch->segment, made_by(row));
    uint64_t now = lab_now_ns();
    if (made.all) {
        stretch->busy_ns += now - stretch->segment_ns;
        count(stretch, row, made);
    }
    if (now - stretch->start_ns >= STRETCH_NS) book(stretch, now);
    stretch->segment_ns = now;
}

void lab_sharing_enter(unsigned vcpu) { stretches[vcpu].segment = made_by(lab_rows_current[vcpu]); }

void lab_sharing_reset(void) {
    uint64_t now = lab_now_ns();
    for (unsigned v = 0; v < VCPUS_MAX; v++) stretches[v] = (struct stretch){.start_ns = now, .segment_ns = now};
}

void lab_sharing_finish(void) {
    for (unsigned v = 0; v < VCPUS_MAX; v++) book(&stretches[v], lab_now_ns());
}
