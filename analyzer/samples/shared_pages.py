"""Memory that processes share, by physical addresses: the same line has another address in each of them.

A page is shared where several processes use it during the same time. One that a process leaves and another
gets later is not: between the two the kernel has cleared it.
"""

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import Trace

PAGE_SHIFT = 12
KEY = np.uint64(1 << 63)  # of physical addresses, beside those made distinct by process


def shared_pages(trace: Trace) -> NDArray[np.uint64]:
    """Numbers of the shared physical pages, ascending; none where physical addresses are not known."""
    rows = trace.rows(
        "SELECT page, first, last FROM ("
        f"SELECT s.phys_addr >> {PAGE_SHIFT} AS page, min(s.time_ns) AS first, max(s.time_ns) AS last, "
        "count(*) OVER (PARTITION BY page) AS processes "
        "FROM samples s JOIN threads t USING (thread) WHERE s.phys_addr > 0 GROUP BY page, t.process"
        ") WHERE processes > 1 ORDER BY page, first"
    )
    if not rows:
        return np.empty(0, np.uint64)
    page = np.array([row[0] for row in rows], np.uint64)
    first, last = (np.array([row[place] for row in rows], np.int64) for place in (1, 2))
    # Of neighbours in order of their beginnings: if no two of these overlap, none of a page do.
    overlap = (page[1:] == page[:-1]) & (first[1:] < last[:-1])
    return np.unique(page[1:][overlap])


def physical_keys(pages: NDArray[np.uint64], physical: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """(n,) the key of each access to a shared page, by its physical address; 0 for others."""
    number = physical >> np.uint64(PAGE_SHIFT)
    place = np.minimum(np.searchsorted(pages, number), len(pages) - 1)
    return np.where(pages[place] == number, physical | KEY, np.uint64(0))
