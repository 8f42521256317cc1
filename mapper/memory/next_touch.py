"""Regions whose users change from phase to phase: no home is right for the whole run.

They are better moved along: each page goes to the node that touches it first in the new phase (next-touch).
The launcher marks a region for that whenever the program, having been alone, makes a thread; of phases that
one team of threads goes through only the program knows.
"""

import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts

from .run_table import RunTable

MOVE = 64  # remote accesses that moving a page costs as much as
LEAST_GAIN = 0.2  # of a region's accesses must become local for it to be worth it
COUNTS_A_CELL = 16  # a cell (granule of pages in a phase) needs so many to tell who uses it

Ints = NDArray[np.int64]


def next_touch_gain(
    stats: PageCounts, rows: Ints, node_of: Ints, table: RunTable, phases_of: Ints | None
) -> float:
    """Share of a region's accesses that become local by moving its pages along, less the cost of moving.

    rows: where the region stands in the statistics; table: its best homes for the whole run; phases_of: the
    phase of each row of the statistics, or what stands for it (None: one). 0: not worth it.
    """
    if phases_of is None:
        return 0.0
    phase, page = phases_of[rows], stats.page[rows]
    accesses = stats.accesses[rows].astype(np.float64)
    total = float(accesses.sum())
    phases = np.unique(phase, return_counts=True)[0]  # so numpy.ma, slow to load, is not asked
    if len(phases) < 2 or total <= 0:
        return 0.0
    cells = len(np.unique(page, return_counts=True)[0]) * len(phases)
    granule = max(1, int(np.ceil(COUNTS_A_CELL * cells / total)))
    cell, place = np.unique(page // granule, return_inverse=True)
    nodes = table.accesses.shape[1]
    counts = np.zeros((len(phases), len(cell), nodes))
    np.add.at(counts, (np.searchsorted(phases, phase), place, node_of[stats.thread[rows]]), accesses)
    fixed = accesses[table.homes_of(page) == node_of[stats.thread[rows]]].sum()
    moving = counts.max(axis=2).sum()
    moves = _moves(counts) * granule
    gain = (moving - fixed - moves * MOVE / stats.period) / total
    return float(gain) if gain >= LEAST_GAIN else 0.0


def _moves(counts: NDArray[np.float64]) -> int:
    """How many cells change hands from phase to phase; counts: (phases, cells, nodes)."""
    used = counts.sum(axis=2) > 0
    owner = counts.argmax(axis=2)
    moves = 0
    last = owner[0]
    for now, seen in zip(owner[1:], used[1:], strict=True):
        moves += int((seen & (now != last)).sum())
        last = np.where(seen, now, last)
    return moves
