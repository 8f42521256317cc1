"""Whether threads keep to whom they exchange lines with, or exchange with anybody.

Told from the halves of each thread's transfers. Two threads are alike if the matrix stays as it is when they
are exchanged: the workers of one thread are, those of a queue that all take from are, a producer and its
consumer are alike and unlike all others.
"""

import numpy as np
from numpy.typing import NDArray

from .communication.transfers import Transfers

FEW = 50  # transfers of a thread in a half, below which nothing is said of it

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def partners_kept(transfers: Transfers, lane: Ints) -> Floats:
    """(N,) share 0..1 of whom each thread exchanges with that is its own: those it had in both halves, beyond
    what others had; -1 where too few transfers are seen. lane: (N,) threads of one value count as one."""
    one, other = (_shares(half) for half in _halves(transfers, lane))
    known = (one.sum(axis=1) > 0) & (other.sum(axis=1) > 0)
    same = (one * other).sum(axis=1)
    common = one @ other.T + one * other.T  # what two exchange with each other they would if exchanged, too
    common = (common + common.T) / 2
    alike = np.divide(common, same[:, None], out=np.zeros_like(common), where=same[:, None] > 0)
    np.fill_diagonal(alike, 0.0)
    others = np.clip(alike, 0.0, 1.0)[:, known].sum(axis=1) / max(np.count_nonzero(known) - 1, 1)
    own: Floats = np.where(known, np.where(same > 0, 1.0 - np.minimum(others, 1.0), 0.0), -1.0)
    return own[lane]


def _halves(transfers: Transfers, lane: Ints) -> tuple[Floats, Floats]:
    """(L, L) what lanes exchanged in the first half of the row's transfers, and in the second."""
    writer, reader = lane[transfers.writer], lane[transfers.reader]
    count = int(lane.max(initial=-1)) + 1
    rows, columns = np.append(writer, reader), np.append(reader, writer)
    events, time = np.tile(transfers.events, 2), np.tile(transfers.middle_ns, 2)
    order = np.lexsort([time, rows])
    order = order[rows[order] != columns[order]]
    rows, columns, events = rows[order], columns[order], events[order]
    total = np.bincount(rows, events, count)
    before = np.cumsum(events) - events / 2 - (np.cumsum(total) - total)[rows]
    late = (2 * before >= total[rows]).astype(np.int64)
    found = np.zeros((2, count, count))
    np.add.at(found, (late, rows, columns), events.astype(np.float64))
    return found[0], found[1]


def _shares(half: Floats) -> Floats:
    total = half.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(half, total, out=np.zeros_like(half), where=total >= FEW)
    return shares
