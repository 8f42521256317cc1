/* Who uses which page how often, by stretch of time: a use is one of a page by one of those that are told apart.
 *
 * Compiled into what sees every access: the emulation (who: a thread) and the lab's virtual machine. Uses lie in memory
 * that is the user's, in the order in which they began, and are counted where they lie; an index finds them.
 *
 * A stretch ends when it has taken a 32nd of the time before it, or more where it has many uses: all stretches but the
 * last have PAGE_USES_MOST together, and the last has each page once for each of those that use it.
 */
#ifndef NUMAPLAN_PAGE_USES_H
#define NUMAPLAN_PAGE_USES_H

#include <stdbool.h>
#include <stdint.h>

#define PAGE_USES_AT_ONCE 1024 /* uses that there is room for */
#define PAGE_USES_MOST (UINT32_C(1) << 22)
#define PAGE_USES_TICK 64 /* ns */
#define PAGE_USES_WHO 0xffff /* one more than the most that can be told apart */

/* As it is read: a stretch's header is followed by its uses; all zero where there is nothing. */
struct page_use {
    uint64_t key;  /* bit 62, the page's number from bit 16 on, and who; of a header bit 63 alone */
    uint64_t made[2]; /* loads and stores; of a header the time at which the stretch begins, and 0 */
    uint32_t missed; /* of these, those that no cache answers */
    uint32_t began;  /* ticks from the stretch's beginning to the first use, at most UINT32_MAX */
};

struct page_uses {
    struct page_use *(*take)(void); /* zeroed room for PAGE_USES_AT_ONCE, NULL: none */
    void (*give)(struct page_use *); /* it is full, and what it has changes no more */
    struct page_use **rooms; /* of this stretch */
    uint32_t room_count, rooms_listed;
    uint32_t first, end; /* this stretch's uses, from the first room's beginning on */
    uint32_t *index, mask, filled;
    int64_t left; /* of PAGE_USES_MOST */
    int64_t begun, since; /* when counting began, and this stretch */
};

/* The use of a page by who; NULL: no room. */
struct page_use *page_uses_find(struct page_uses *uses, uint64_t number, uint32_t who, int64_t now);

/* Whether the stretch has lasted long enough. */
bool page_uses_due(const struct page_uses *uses, int64_t now);

/* What follows is of a stretch that begins now; no use that was found is to be counted on. */
void page_uses_stretch(struct page_uses *uses, int64_t now);

/* Pages are others' from now on: their uses of this stretch are not found any more. who: how many there may be. */
void page_uses_forget(struct page_uses *uses, uint64_t first, uint64_t end, uint32_t who);

#endif
