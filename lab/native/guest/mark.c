#include "../plugin/marks.h"
#include "guest.h"

#include <sys/mman.h>

static volatile uint64_t *page;

void guest_mark_open(void) {
    void *wanted = (void *)(uintptr_t)MARK_PAGE;
    void *found =
        mmap(wanted, MARK_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (found != wanted) guest_die("the page for marks is taken");
    page = found;
    page[0] = 0; /* fault it in; a digit, forgotten at the next command */
    guest_mark(MARK_NUMBER_DONE);
}

void guest_mark(unsigned slot) { page[slot] = 0; }

void guest_mark_with(unsigned slot, unsigned count, const uint64_t *numbers) {
    for (unsigned i = 0; i < count; i++) {
        for (int shift = 56; shift >= 0; shift -= 8) guest_mark((numbers[i] >> shift) & 0xff);
        guest_mark(MARK_NUMBER_DONE);
    }
    guest_mark(slot);
}
