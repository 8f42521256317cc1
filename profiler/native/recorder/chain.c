#include "chain.h"

#include "preload.h"
#include "recorder.h"
#include "unwind.h"

#include <stdatomic.h>
#include <string.h>

enum { FRAMES = 16, OWN_FRAMES = 8, CHAINS = 1 << 14, TRIES = 64 };

static _Atomic uint64_t known[CHAINS]; /* hashes; a chain's number is its place, from 1 */

/* Where this is, and with which registers. */
static inline __attribute__((always_inline)) struct np_frame here(void) {
    struct np_frame frame = {0, 0, 0};
#if defined __x86_64__
    __asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
                     : "=r"(frame.pc), "=r"(frame.sp), "=r"(frame.fp));
#elif defined __aarch64__
    __asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29" : "=r"(frame.pc), "=r"(frame.sp), "=r"(frame.fp));
#endif
    return frame;
}

static uintptr_t bias_of(uintptr_t code) {
    uint64_t name;
    uintptr_t bias;
    return np_module_of(code, &name, &bias) ? bias : 0;
}

/* Return addresses of the functions above this library, innermost first. */
static __attribute__((noinline)) size_t walk(uint64_t sites[FRAMES]) {
    struct np_frame frame = here();
    const struct np_bounds stack = {frame.sp, np_self.stack_high};
    if (frame.sp < np_self.stack_low || frame.sp >= np_self.stack_high) return 0; /* another stack than its own */
    uintptr_t own = bias_of(frame.pc);
    size_t count = 0;
    for (int i = 0; count < FRAMES && i < FRAMES + OWN_FRAMES && np_unwind(&frame, stack); i++) {
        uintptr_t bias = bias_of(frame.pc);
        if (!bias && count) break;
        if (bias != own) sites[count++] = frame.pc + 1;
    }
    return count;
}

uint32_t np_chain(void) {
    uint64_t sites[FRAMES];
    if (!np_self.known) return 0;
    size_t count = walk(sites);
    if (!count) return 0;
    uint64_t hash = np_hash(NP_HASH_START, sites, count * sizeof *sites);
    hash += !hash;
    for (uint32_t i = 0; i < TRIES; i++) {
        uint32_t place = (uint32_t)(hash + i) % CHAINS;
        uint64_t found = atomic_load(&known[place]);
        if (!found && atomic_compare_exchange_strong(&known[place], &found, hash)) {
            struct np_record record = {.kind = NP_CHAIN, .thread = np_thread_number(), .a = place + 1};
            np_log_text(&record, sites, count * sizeof *sites);
            found = hash;
        }
        if (found == hash) return place + 1;
    }
    return 0;
}

void np_chains_forget(void) {
    for (uint32_t i = 0; i < CHAINS; i++) atomic_store_explicit(&known[i], 0, memory_order_relaxed);
}
