"""Small memory of libraries that is where it should be without a plan.

Every process of a job has a hundred such regions (of the C library, of MPI), each with a few accesses, and
the thread that touches one first is the one that uses it. A plan that lists them all cannot be read.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from numaplan.mapper.page_runs import RunTable

if TYPE_CHECKING:
    from numaplan.mapper.pages import PageStats

SMALL = 1 << 20  # bytes of a region
LOST = 1e-3  # share of all accesses that may become remote by leaving them all out

_OF_LIBRARY = re.compile(r"\.so(\.[0-9.]+)?([:+]|$)")  # libc.so.6:.data, libmpi.so.40+0x1f

Ints = NDArray[np.int64]


def without_gain(stats: "PageStats", tables: Mapping[int, RunTable], node_of: Ints) -> list[int]:
    """Numbers of the small regions of libraries that are as good where their pages are touched first.

    node_of: (N,) position of each thread's node. Those that lose least go first, while all together make no
    more than LOST of the accesses remote.
    """
    wanted = [number for number, table in tables.items() if _is_small(table)]
    if stats.toucher is None or not wanted:
        return []
    rows = np.flatnonzero(np.isin(stats.region, wanted) & (stats.thread >= 0))
    rows = rows[stats.thread[rows] < len(node_of)]
    user, toucher = node_of[stats.thread[rows]], stats.toucher[rows]
    first = np.where(toucher >= 0, node_of[np.clip(toucher, 0, len(node_of) - 1)], -1)
    home = np.empty(len(rows), np.int64)
    for number in wanted:
        own = stats.region[rows] == number
        home[own] = tables[number].homes_of(stats.page[rows[own]])
    gain = stats.accesses[rows] * ((home == user).astype(float) - (first == user))
    gains = np.bincount(stats.region[rows], weights=gain, minlength=len(stats.regions))
    order = sorted(wanted, key=lambda number: (gains[number], number))
    lost = np.cumsum(np.maximum(gains[order], 0.0))
    return [order[place] for place in np.flatnonzero(lost <= LOST * float(stats.accesses.sum())).tolist()]


def _is_small(table: RunTable) -> bool:
    """Whether it belongs to a shared library, or was allocated by one."""
    return (
        bool(_OF_LIBRARY.search(table.key.name))
        and table.key.bytes < SMALL
        and not table.interleave
        and not table.next_touch
    )
