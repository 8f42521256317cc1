/* Chains of calls as a tree: a call is known by the one that was under way when it was made, and by its address.
 *
 * Compiled into the emulation, whose threads tell it what they call, and into the reader of perf's recordings.
 */
#ifndef NUMAPLAN_CALL_TREE_H
#define NUMAPLAN_CALL_TREE_H

#include <stdint.h>

#define CALL_TREE_MOST (UINT32_C(1) << 20)

struct call {
    uint64_t ip;
    uint32_t outer; /* 0: none */
};

/* Zeroed: empty. calls: the first is number 1; an outer one has a lower number. */
struct call_tree {
    struct call *calls;
    uint32_t *index, mask, count;
};

/* The number of a call by another one (0: by none), a new one where it is met first; told: whether it is new. Where
 * there is no room for it, that of the other one. */
uint32_t call_tree_find(struct call_tree *tree, uint32_t outer, uint64_t ip, int *told);

/* Forget all. */
void call_tree_clear(struct call_tree *tree);

#endif
