"""Who touched a page first, where initialisation was too quick for every page of it to be sampled.

A page written once over by the main thread has half a sample at period 1000. Seen alone, many of the pages
would count as first touched by the threads that use them later, and today's placement as far better than it
is. Where one thread went evenly over a stretch of a region, the pages in between are its own too.
"""

import numpy as np
from numpy.typing import NDArray

EVEN = 0.7  # of the pages that as many samples show when they fall evenly

Ints = NDArray[np.int64]
Counts = NDArray[np.int64] | NDArray[np.float64]


def first_touchers(region: Ints, page: Ints, before: Counts, toucher: Ints) -> Ints:
    """(rows,) the thread that touched each row's page first, as far as can be told.

    Rows in order of region and page; before: accesses from before the threads start; toucher: the thread seen
    first on the page.
    """
    answer = toucher.copy()
    borders = np.flatnonzero(np.diff(region, prepend=-1, append=-1))
    early = np.add.reduceat(before, borders[:-1]) if len(region) else before
    for place in np.flatnonzero(early).tolist():
        rows = slice(borders[place], borders[place + 1])
        _fill(page[rows], before[rows], answer[rows])
    return answer


def _fill(page: Ints, before: Counts, toucher: Ints) -> None:
    """The same in one region (in place)."""
    seen = before > 0
    known, at = np.unique(page[seen], return_index=True)
    span = int(known[-1] - known[0]) + 1
    rate = float(before.sum()) / span
    if len(known) < 2 or len(known) < EVEN * span * -np.expm1(-rate):
        return
    gap = int(1 / rate) if rate < 1 else 0  # as far as from one sample to the next it went on at both ends
    inside = (page >= known[0] - gap) & (page <= known[-1] + gap) & ~np.isin(page, known)
    nearest = np.clip(np.searchsorted(known, page[inside]) - 1, 0, len(known) - 1)
    toucher[inside] = toucher[seen][at][nearest]
