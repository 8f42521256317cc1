"""Whether threads, and pairs of them, keep to whom they exchange lines with, or exchange with anybody.

Told from the halves of each thread's transfers. Two threads are alike if the matrix stays as it is when they
are exchanged: the workers of one thread are, those of a queue that all take from are, a producer and its
consumer are alike and unlike all others.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .communication.transfers import Transfers

FEW = 50  # transfers of a thread in a half, below which nothing is said of it
FEWEST, MOST = 5, 1024  # threads of which pairs can be told from what each thread does with all, in 300 MiB
SHORTEST = 4  # stretches of time that a run needs for its halves to be told apart
STRETCHES = (2, 4, 8, 16)  # a run is divided into

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def partners_kept(transfers: Transfers, lane: Ints) -> Floats:
    """(N,) share 0..1 of whom each thread exchanges with that is its own: those it had in both halves, beyond
    what others had; -1 where too few transfers are seen, or too few stretches of time. lane: (N,) threads of
    one value count as one."""
    if len(np.unique(transfers.middle_ns)) < SHORTEST:
        return np.full(len(lane), -1.0)
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


def pairs_kept(transfers: Transfers, lane: Ints, group: Ints) -> float:
    """How far the pairs of a group which exchange more than its threads' totals tell do so in one stretch of
    the run as in the next: their correlation -1..1, by stretches of the length at which it is greatest, as
    partners may change from phase to phase. 1 where too little is seen, or of too many threads. lane: as
    above; group: threads.
    """
    members = np.unique(lane[group])
    if not FEWEST <= len(members) <= MOST:
        return 1.0
    number = np.full(int(lane.max(initial=-1)) + 1, -1)
    number[members] = np.arange(len(members))
    one, other = number[lane[transfers.writer]], number[lane[transfers.reader]]
    inside = np.flatnonzero((one >= 0) & (other >= 0) & (one != other))
    inside = inside[np.argsort(transfers.middle_ns[inside], kind="stable")]
    events = transfers.events[inside]
    total = int(events.sum())
    if total < FEW * len(members):
        return 1.0
    most = max(STRETCHES)
    stretch = (np.cumsum(events) - (events + 1) // 2) * most // total
    count = len(members)
    cell = (stretch * count + one[inside]) * count + other[inside]
    found = np.bincount(cell, events, most * count * count).reshape(most, count, count)
    found += found.transpose(0, 2, 1)
    return max(_repeated(found.reshape(parts, -1, count, count).sum(axis=1)) for parts in STRETCHES)


def _repeated(exchanged: Floats) -> float:
    """Mean correlation of what is special about pairs between adjacent ones of (K, N, N) matrices."""
    found = []
    for one, other in pairwise(_beyond_totals(matrix) for matrix in exchanged):
        scale = float(np.linalg.norm(one) * np.linalg.norm(other))
        found.append(float(np.vdot(one, other)) / scale if scale > 0 else 0.0)
    return float(np.mean(found))


def _beyond_totals(exchanged: Floats) -> Floats:
    """(N, N) what each pair exchanges beyond the sum of its threads' parts (least squares); diagonal 0."""
    count = len(exchanged)
    mean = float(exchanged.sum()) / (count * (count - 1))
    part = (exchanged.sum(axis=1) - (count - 1) * mean) / (count - 2)
    answer: Floats = exchanged - (mean + part)[:, None] - part
    np.fill_diagonal(answer, 0.0)
    return answer


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
