"""Whether memory has the same users in another run: only then a plan can place it for them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..memory.page_counts import PageCounts

FEW = 50  # accesses of a thread in samples, below which nothing is said of it
SEEN = 4  # accesses to a page in samples, below which it is not said whose it is
CHANCE = 2.0  # times as much as its share of the threads, from which a page has a user

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def same_users(one: PageCounts, other: PageCounts, threads: Sequence[tuple[str, str]]) -> Floats:
    """(N,) of what each thread accesses of pages that it uses most in the other run, how much it used most in
    the one, too; -1 where little is known.

    threads: (process, creation path) of the numbers in both. Of memory that it did not allocate itself, from
    when the second thread starts; regions are the same by who made them, and when.
    """
    numbers: dict[tuple[str, ...], int] = {}
    (page, user, made), (page_then, user_then, made_then) = (
        _uses(counts, threads, numbers) for counts in (other, one)
    )
    pages, at = np.unique(np.concatenate([page, page_then]), return_inverse=True)
    now = _main_users(at[: len(page)], user, made, len(pages))
    then = _main_users(at[len(page) :], user_then, made_then, len(pages))
    here, count = at[: len(page)], len(threads)
    known = then[here] >= 0
    all_of, mine, same = (
        np.bincount(user[chosen], made[chosen], count)
        for chosen in (known, known & (now[here] == user), known & (then[here] == user))
    )
    enough = (all_of >= FEW) & (mine * count > CHANCE * all_of)
    return np.where(enough, np.minimum(same / np.maximum(mine, 1e-300), 1.0), -1.0)


def _uses(
    counts: PageCounts, threads: Sequence[tuple[str, str]], numbers: dict[tuple[str, ...], int]
) -> tuple[Ints, Ints, Floats]:
    """Page, user and accesses of the rows that count; numbers: of regions, in both runs."""
    index = {key: thread for thread, key in enumerate(threads)}
    region, owner = np.zeros((2, len(counts.regions)), np.int64)
    for place, key in enumerate(counts.regions):
        words = (key.process, key.kind, key.name, key.thread, str(key.sequence))
        region[place] = numbers.setdefault(words, len(numbers))
        owner[place] = index.get((key.process, key.thread), -1)
    shared = (counts.thread >= 0) & (counts.accesses > 0) & (owner[counts.region] != counts.thread)
    page = (region[counts.region] << 36) + counts.page
    return page[shared], counts.thread[shared], counts.accesses[shared].astype(np.float64)


def _main_users(page: Ints, user: Ints, made: Floats, pages: int) -> Ints:
    """(pages,) who makes more than half of the accesses to each; -1: nobody, or there are too few."""
    order = np.lexsort([-made, page])
    first = order[np.append(True, np.diff(page[order]) != 0)[: len(order)]]
    all_of = np.bincount(page, made, pages)[page[first]]
    clear = first[(all_of >= SEEN) & (2 * made[first] > all_of)]
    answer = np.full(pages, -1, np.int64)
    answer[page[clear]] = user[clear]
    return answer
