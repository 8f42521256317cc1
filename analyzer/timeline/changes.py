"""When the program changes: points in time where the threads' rates of access change for good.

Algorithm 1 sees only the sum of all threads, and only where it comes down; a phase in which other threads
work, or all work harder, passes it by. Here the run is cut where Poisson rates per thread on both sides
explain the counts better than one rate does, as long as that gains more than chance would (BIC, widened by
the measured dispersion); binary segmentation, the greatest gain first.
"""

from heapq import heappop, heappush

import numpy as np
from numpy.typing import ArrayLike, NDArray

Cells = NDArray[np.float64]

MOST_BINS = 4096
MOST_CHANGES = 32
LEAST_WIDTH = 5  # bins on each side of a change


def change_points(per_thread: ArrayLike) -> list[int]:
    """Slices at which a new phase begins, ascending; empty when nothing changes.

    per_thread: (S, N) accesses of each thread in each slice.
    """
    return _changes(np.asarray(per_thread, np.float64), shares=False)


def share_changes(cells: ArrayLike) -> list[int]:
    """The same for each column's share of its row's sum, whatever that sum is; cells: (S, D) counts."""
    return _changes(np.asarray(cells, np.float64), shares=True)


def _changes(cells: Cells, shares: bool) -> list[int]:
    cells = cells[:, cells.sum(axis=0) > 0]
    if len(cells) < 2 * LEAST_WIDTH or cells.shape[1] <= shares:
        return []
    width = -(-len(cells) // MOST_BINS)
    bins = np.add.reduceat(cells, np.arange(0, len(cells), width), axis=0)
    sums = np.vstack([np.zeros(bins.shape[1]), np.cumsum(bins, axis=0)])
    exposure = sums.sum(axis=1) if shares else np.arange(len(sums), dtype=np.float64)
    penalty = _dispersion(bins) * (bins.shape[1] + 1) * np.log(len(bins))
    found: list[int] = []
    waiting: list[tuple[float, int, int, int]] = []
    _offer(waiting, sums, exposure, 0, len(bins), penalty)
    while waiting and len(found) < MOST_CHANGES:
        _, start, place, end = heappop(waiting)
        found.append(place)
        _offer(waiting, sums, exposure, start, place, penalty)
        _offer(waiting, sums, exposure, place, end, penalty)
    return [place * width for place in sorted(found)]


def _offer(
    waiting: list[tuple[float, int, int, int]],
    sums: Cells,
    exposure: Cells,
    start: int,
    end: int,
    penalty: float,
) -> None:
    """Put the best cut of [start, end) among those waiting, if it is worth its penalty."""
    places = np.arange(start + LEAST_WIDTH, end - LEAST_WIDTH + 1)
    if not len(places):
        return
    left = _likelihood(sums[places] - sums[start], exposure[places] - exposure[start])
    right = _likelihood(sums[end] - sums[places], exposure[end] - exposure[places])
    whole = _likelihood(sums[[end]] - sums[start], exposure[[end]] - exposure[start])
    gain = left + right - whole
    best = int(np.argmax(gain))
    if gain[best] > penalty:
        heappush(waiting, (-float(gain[best]), start, int(places[best]), end))


def _likelihood(counts: Cells, exposure: Cells) -> Cells:
    """(C,) log likelihood of (C, D) counts at their own rates over the exposure, but for constants.

    exposure: (C,) bins, or all counts where shares are compared.
    """
    rate = counts / np.maximum(exposure, 1.0)[:, None]
    terms: Cells = counts * np.log(np.where(rate > 0, rate, 1.0))
    answer: Cells = terms.sum(axis=1)
    return answer


def _dispersion(bins: Cells) -> float:
    """How much counts scatter from bin to bin, against Poisson's scatter of the same mean; at least half."""
    steps = np.diff(bins, axis=0)
    level = float(bins[1:].sum() + bins[:-1].sum())
    return max(0.5, float((steps**2).sum()) / level) if level else 1.0
