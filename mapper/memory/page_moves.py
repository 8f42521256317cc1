"""How many pages the kernel will move between nodes (AutoNUMA) where no plan keeps them where they are."""

import numpy as np

from numaplan.analyzer import PageCounts

from ..threads.problem import Floats
from .run_table import PAGE

# Of a page whose accesses are all remote: the median of what the lab counted (docs/results/programs.md).
MOVED = 1.6  # moves
ROUNDS = 40  # of halving an interval


def pages_moved(stats: PageCounts, near: Floats) -> float:
    """Expected moves when pages begin where they are touched first; near: (N, N) how likely the one finds on
    its own node what the other touched.

    Of each region: its pages times the share of its accesses that are remote. None where nothing is known of
    first touches.
    """
    if stats.toucher is None or not len(stats.region):
        return 0.0
    known = (stats.thread >= 0) & (stats.toucher >= 0)
    known &= (stats.thread < len(near)) & (stats.toucher < len(near))
    count, made = len(stats.regions), stats.all_accesses
    remote = np.zeros(len(made))
    remote[known] = 1.0 - near[stats.thread[known], stats.toucher[known]]
    parts = (np.bincount(stats.region, part, count).astype(np.float64) for part in (made, made * remote))
    total, away = parts
    share = np.divide(away, total, out=np.zeros(count), where=total > 0)
    return MOVED * float((share * _pages(stats, total)).sum())


def _pages(stats: PageCounts, samples: Floats) -> Floats:
    """(regions,) pages that are in use: those seen, and as many more as so few samples leave unseen.

    Of P pages n samples show P (1 - e^(-n/P)) where all are used alike.
    """
    new = np.diff(stats.page_number, prepend=-1) != 0
    seen = np.bincount(stats.region[new], minlength=len(stats.regions)).astype(np.float64)
    most = np.maximum(np.array([-(-key.bytes // PAGE) for key in stats.regions], np.float64), seen)
    low, high = seen, most
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        shown = middle * -np.expm1(-samples / np.maximum(middle, 1.0))
        low, high = np.where(shown < seen, middle, low), np.where(shown < seen, high, middle)
    return high
