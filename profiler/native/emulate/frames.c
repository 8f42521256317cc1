/* See frames.h.
 *
 * A call writes its return address to the stack, and a return reads it. So both are accesses, which are seen anyway, and
 * they tell the stack pointer: what a call finds below it, or a return at it, is over, however it ended. By that, chains
 * are right after longjmp and exceptions, in signal handlers, and where a function ends in a jump to another. A stack
 * that lies above the one before it (coroutines, sigaltstack) has chains of its own, from then on. Programs for x86 only.
 *
 * Calls get numbers (call_tree.h) when a sample finds them under way.
 */

#include "frames.h"

#include "call_tree.h"
#include "emulate.h"

#include <pthread.h>
#include <stdlib.h>

#define MOST 128 /* calls under way that are told apart: the outermost */

/* In memory of the process's own, which a forked one has as it was. */
struct em_frames {
    uint32_t depth;
    struct frame {
        uint64_t stack, ip;
        uint32_t number; /* 0: it has none yet */
    } frames[MOST];
};

static struct call_tree tree;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the tree, under the free schedule */

/* For a thread that begins; NULL: no memory. */
struct em_frames *em_frames_new(void) { return calloc(1, sizeof(struct em_frames)); }

/* It is not known any more what the thread has called. */
void em_frames_clear(struct em_frames *f) {
    if (f) f->depth = 0;
}

/* In a forked child: numbers begin again. */
void em_frames_forked(struct em_frames *f) {
    pthread_mutex_init(&lock, NULL);
    call_tree_clear(&tree);
    for (uint32_t i = 0; f && i < f->depth; i++) f->frames[i].number = 0;
}

/* The number of the innermost call under way, 0 where none is known. */
uint32_t em_frames_innermost(struct em_frames *f) {
    if (f == NULL || f->depth == 0) return 0;
    uint32_t from = f->depth;
    while (from > 0 && f->frames[from - 1].number == 0) from--;
    if (from == f->depth) return f->frames[from - 1].number;
    if (!em_options.fair) pthread_mutex_lock(&lock);
    for (uint32_t outer = from ? f->frames[from - 1].number : 0; from < f->depth; from++) {
        int is_new;
        uint32_t number = call_tree_find(&tree, outer, f->frames[from].ip, &is_new);
        if (is_new) em_spool_call(outer, f->frames[from].ip);
        outer = f->frames[from].number = number;
    }
    if (!em_options.fair) pthread_mutex_unlock(&lock);
    return f->frames[f->depth - 1].number;
}

static inline void end_below(struct em_frames *f, uint64_t stack) {
    while (f->depth && f->frames[f->depth - 1].stack <= stack) f->depth--;
}

/* A call that writes its return address there. */
void em_frames_called(struct em_frames *f, uint64_t stack, uint64_t ip) {
    if (f == NULL) return;
    end_below(f, stack);
    if (f->depth < MOST) f->frames[f->depth++] = (struct frame){stack, ip, 0};
}

/* A return that reads its address there. */
void em_frames_returned(struct em_frames *f, uint64_t stack) {
    if (f) end_below(f, stack);
}
