#include "call_tree.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 1024 /* calls; the index is twice as long */

static uint32_t place_of(const struct call_tree *tree, uint32_t outer, uint64_t ip) {
    uint64_t hash = (ip * UINT64_C(0x9e3779b97f4a7c15) ^ outer) * UINT64_C(0xd1342543de82ef95);
    uint32_t at = (uint32_t)(hash >> 32) & tree->mask;
    for (uint32_t number; (number = tree->index[at]) != 0; at = (at + 1) & tree->mask)
        if (tree->calls[number - 1].ip == ip && tree->calls[number - 1].outer == outer) break;
    return at;
}

/* Twice the room; 0: there is none. */
static int grow(struct call_tree *tree) {
    uint32_t room = tree->index ? tree->mask + 1 : FIRST_ROOM;
    if (room > CALL_TREE_MOST) return 0;
    struct call *calls = realloc(tree->calls, room * sizeof *calls);
    if (calls == NULL) return 0;
    tree->calls = calls;
    uint32_t *index = calloc(2 * (size_t)room, sizeof *index);
    if (index == NULL) return 0;
    free(tree->index);
    tree->index = index;
    tree->mask = 2 * room - 1;
    for (uint32_t i = 0; i < tree->count; i++) tree->index[place_of(tree, calls[i].outer, calls[i].ip)] = i + 1;
    return 1;
}

uint32_t call_tree_find(struct call_tree *tree, uint32_t outer, uint64_t ip, int *told) {
    *told = 0;
    if (tree->count > tree->mask / 2 || tree->index == NULL) {
        if (!grow(tree)) return outer;
    }
    uint32_t at = place_of(tree, outer, ip);
    if (tree->index[at] == 0) {
        tree->calls[tree->count++] = (struct call){ip, outer};
        tree->index[at] = tree->count;
        *told = 1;
    }
    return tree->index[at];
}

void call_tree_clear(struct call_tree *tree) {
    free(tree->calls);
    free(tree->index);
    *tree = (struct call_tree){0};
}
