/* Who takes lines that others have written: each one is counted, by page and stretch of time.
 *
 * Compiled into what sees every access: the emulation (who: a thread) and the lab's virtual machine (who: a task).
 *
 * A transfer is an access by one of those that are told apart to a line whose last writer is another, the first one
 * since that write. Of each page that several have touched the last writer of each line is known, and who has touched
 * it since; of a page that one alone has touched, which lines it wrote. What an L1 has, its user has touched since the
 * last write by others, so it is enough to ask of what the L1s do not answer.
 */
#ifndef NUMAPLAN_TRANSFERS_H
#define NUMAPLAN_TRANSFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRANSFERS_WHO 0xfffe /* one more than the most that can be told apart */

struct shared_page;

bool transfers_init(void); /* false: no memory */

/* The page of an index, of which pages have low ones; NULL: no memory. */
struct shared_page *transfers_page(uint32_t index);

/* An access to a line of the page; number: of the page for its user, who is told it with the count. True if it would ask
 * another's caches where each has its own: a load that is the first to take the line from its writer, or a store to one
 * that others have. */
bool transfers_access(struct shared_page *page, uint64_t number, uint32_t line, uint32_t who, bool store);

/* A line of it is written for one of them by somebody who is not counted. */
void transfers_written(struct shared_page *page, uint32_t line, uint32_t who);

/* The page is given back: who touches it next finds nobody's data. */
void transfers_forget(uint32_t index);

/* As if nothing had been written; in a forked child, too, where the table of counts is its parent's. */
void transfers_restart(void);

/* The user's: the time now; what is done with two words (table.c), and zeroed memory for the table, NULL: none. */
int64_t transfers_now(void);
void transfers_write(uint64_t first, uint64_t second);
void *transfers_room(size_t bytes);

/* table.c */
void transfers_table_stretch(int64_t now);
void transfers_table_add(uint64_t number, uint32_t writer, uint32_t reader);
void transfers_table_restart(void);

#endif
