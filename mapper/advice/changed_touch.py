"""The pages of a workload as they would be if other threads touched them first."""

from collections.abc import Collection

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts


def touched_by_users(pages: PageCounts, regions: Collection[int]) -> PageCounts:
    """The same where each page of these regions is first touched by the thread that uses it most.

    What was before the threads started is then that thread's, too.
    """
    assert pages.toucher is not None
    chosen = np.isin(pages.region, list(regions)) & (pages.thread >= 0)
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return pages
    number = pages.page_number[rows]
    user = _main_users(number, pages.thread[rows], pages.accesses[rows])
    toucher = pages.toucher.copy()
    toucher[rows] = user[number - number[0]]
    own = np.flatnonzero(pages.thread[rows] == toucher[rows])
    _, first = np.unique(number[own], return_index=True)
    target = rows[own[first]]
    moved = {
        name: _moved(values, rows, number, target)
        for name in ("before", "missed_before")
        if (values := getattr(pages, name)) is not None
    }
    return replace(pages, toucher=toucher, **moved)


def _main_users(
    number: NDArray[np.int64], thread: NDArray[np.int64], accesses: NDArray[np.int64] | NDArray[np.float64]
) -> NDArray[np.int64]:
    """Of each page, from the first number to the last, the thread with most accesses; number: ascending."""
    width = int(thread.max()) + 1
    keys, at = np.unique((number - number[0]) * width + thread, return_inverse=True)
    used = np.bincount(at, accesses)
    page, user = keys // width, keys % width
    order = np.lexsort((-used, page))
    _, first = np.unique(page[order], return_index=True)
    answer = np.full(int(number[-1] - number[0]) + 1, -1, np.int64)
    answer[page[order][first]] = user[order][first]
    return answer


def _moved(
    values: NDArray[np.int64] | NDArray[np.float64],
    rows: NDArray[np.int64],
    number: NDArray[np.int64],
    target: NDArray[np.int64],
) -> NDArray[np.int64] | NDArray[np.float64]:
    """The values with the sum of each page's rows in its target row; targets: one a page, in order."""
    pages = np.unique(number, return_inverse=True)[1]
    sums = np.bincount(pages, values[rows])
    answer = values.copy()
    answer[rows] = 0
    answer[target] = sums.astype(values.dtype)
    return answer
