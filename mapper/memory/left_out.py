"""Which regions a plan leaves out: small memory of libraries, as good where it is touched first.

Every process of a job has a hundred such regions (of the C library, of MPI), each with a few accesses, and
the thread that touches one first is the one that uses it. A plan that lists them all could not be read.
"""

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts
from numaplan.profiler import RegionKey

from .run_table import RunTable
from .site_rules import SiteRule, tables_by_region

SMALL = 1 << 20  # bytes of a region
CLEARLY = 0.5  # of what is remote by chance, that first touch must make local
LOST = 1e-3  # share of all accesses that may become remote by leaving them all out
_OF_LIBRARY = re.compile(r"\.so(\.[0-9.]+)?([:+]|$)")  # libc.so.6:.data, libmpi.so.40+0x1f

Ints = NDArray[np.int64]


def leave_out(
    stats: PageCounts,
    tables: dict[int, RunTable],
    rules: Mapping[int, SiteRule],
    node_of: Ints,
    by_region: Ints,
    borders: Ints,
) -> list[RegionKey]:
    """Take the regions without gain out of the tables, and rules that are for such only; their keys."""
    out = set(without_gain(stats, tables_by_region(stats, tables, rules), node_of, by_region, borders))
    left = []
    for number in list(tables):
        members = rules[number].members.tolist() if number in rules else [number]
        if out.issuperset(members):
            del tables[number]
            left += [stats.regions[member] for member in members]
    return left


def without_gain(
    stats: PageCounts, tables: Mapping[int, RunTable], node_of: Ints, by_region: Ints, borders: Ints
) -> list[int]:
    """Numbers of the small regions of libraries that are as good where their pages are touched first.

    node_of: (N,) position of each thread's node; by_region: rows of the statistics in order of regions, those
    of the i-th in borders[i]..borders[i+1]. Those that lose least go first, while all together make no more
    than LOST of the accesses remote.
    """
    wanted = [number for number, table in tables.items() if _is_small(table)]
    if stats.toucher is None or not wanted:
        return []
    own = [by_region[borders[number] : borders[number + 1]] for number in wanted]
    rows = np.concatenate(own)
    home = np.concatenate(
        [tables[number].homes_of(stats.page[part]) for number, part in zip(wanted, own, strict=True)]
    )
    known = (stats.thread[rows] >= 0) & (stats.thread[rows] < len(node_of))
    rows, home = rows[known], home[known]
    user, toucher = node_of[stats.thread[rows]], stats.toucher[rows]
    first = np.where(toucher >= 0, node_of[np.clip(toucher, 0, len(node_of) - 1)], -1)
    gain = stats.accesses[rows] * ((home == user).astype(float) - (first == user))
    gains = np.bincount(stats.region[rows], weights=gain, minlength=len(stats.regions))
    order = sorted(wanted, key=lambda number: (gains[number], number))
    lost = np.cumsum(np.maximum(gains[order], 0.0))
    return [order[place] for place in np.flatnonzero(lost <= LOST * float(stats.accesses.sum())).tolist()]


def better_touched(stats: PageCounts, rows: Ints, node_of: Ints) -> bool:
    """Whether memory of which nobody knows who will use which page is left to whoever touches it first.

    Then its users did: spread over their nodes it is as local as by chance, which first touch must beat
    clearly, as it may burden one node alone.
    """
    if stats.toucher is None:
        return False
    made, user, toucher = stats.accesses[rows], node_of[stats.thread[rows]], stats.toucher[rows]
    known = (toucher >= 0) & (toucher < len(node_of))
    own = known & (node_of[np.where(known, toucher, 0)] == user)
    chance = 1 / len(np.unique(user))
    return bool(made[own].sum() >= (chance + CLEARLY * (1 - chance)) * made.sum())


def _is_small(table: RunTable) -> bool:
    """Whether it belongs to a shared library, or was allocated by one."""
    return (
        bool(_OF_LIBRARY.search(table.key.name))
        and table.key.bytes < SMALL
        and not table.interleave
        and not table.next_touch
    )
