/* The call chains of samples: what was called by what, as numbers of calls (call_tree.h). */
#include "call_tree.h"
#include "perfdata.h"

#include <stdlib.h>

#define MARKS (UINT64_MAX - 4094) /* from here on an entry says of what the following ones are */
#define USER (UINT64_MAX - 511)
#define PROCESS (UINT64_C(1) << 63) /* the outermost call of all of a process, which is none: its id */
#define MOST 1024

/* NULL: no memory. */
struct call_tree *perfdata_callers_new(void) { return calloc(1, sizeof(struct call_tree)); }

void perfdata_callers_free(struct call_tree *tree) {
    call_tree_clear(tree);
    free(tree);
}

/* How many there are. */
uint32_t perfdata_callers_count(const struct call_tree *tree) { return tree->count; }

/* All of them; callers: numbers, 0 for those of a process. */
void perfdata_callers_list(const struct call_tree *tree, uint64_t *ips, uint32_t *callers) {
    for (uint32_t i = 0; i < tree->count; i++) {
        ips[i] = tree->calls[i].ip;
        callers[i] = tree->calls[i].outer;
    }
}

/* The user's part of a chain: entries [from, to), innermost first. */
static void users(const uint8_t *entries, uint64_t count, int swap, uint64_t *from, uint64_t *to) {
    *from = *to = 0;
    int marked = 0, user = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t entry = perfdata_read64(entries + 8 * i, swap);
        if (entry >= MARKS) {
            marked = 1;
            if (user) break;
            user = entry == USER;
            if (user) *from = i + 1;
        } else if (user || !marked) {
            *to = i + 1;
        }
    }
    if (*to < *from) *to = *from;
}

/* The innermost call of each sample's chain, which is at a place of a buffer and inside of it; 0: none. ips: where the
 * samples are: the first entry, which is no call. */
void perfdata_callers(struct call_tree *tree, const uint8_t *base, const int64_t *places, const uint64_t *ips,
                      const int64_t *pids, int64_t count, int swap, int32_t *out) {
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *entries = base + places[i] + 8;
        uint64_t from, to;
        int is_new;
        users(entries, perfdata_read64(base + places[i], swap), swap, &from, &to);
        if (from < to && perfdata_read64(entries + 8 * from, swap) == ips[i]) from++;
        if (to - from > MOST) to = from + MOST;
        const uint32_t process = call_tree_find(tree, 0, PROCESS | (uint32_t)pids[i], &is_new);
        uint32_t number = process;
        for (; to > from; to--) /* a return address is behind its call */
            if (perfdata_read64(entries + 8 * (to - 1), swap) - 1 < PROCESS)
                number = call_tree_find(tree, number, perfdata_read64(entries + 8 * (to - 1), swap) - 1, &is_new);
        out[i] = number == process ? 0 : (int32_t)number;
    }
}
