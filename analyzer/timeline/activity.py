"""When each thread runs, as far as its accesses show it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..samples.trace_samples import TraceSamples

STRETCHES = 64  # of the run: few enough that samples show who runs in each
RUNS = 0.1  # of the busiest thread's accesses, from which a thread counts among those that run

Floats = NDArray[np.float64]


def running_together(samples: TraceSamples) -> Floats:
    """(N, N) how far the other thread (column) runs while the thread does, 0..1; 0 on the diagonal."""
    first = samples.first_ns
    width = max(samples.last_ns - first + 1, 1) / STRETCHES
    counts = np.zeros((STRETCHES, samples.threads))
    for columns in samples.columns():
        stretch = np.minimum(((columns["time_ns"] - first) / width).astype(np.int64), STRETCHES - 1)
        np.add.at(counts, (stretch, columns["thread"]), 1.0)
    return together(counts)


def living_together(lives: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """(N, N) whether two threads live at the same time; lives: (start, end) in ns of each, end -1: to the end
    of the run. A stretch of time in which one ends and the other begins shows both."""
    start, end = np.array(lives, np.int64).reshape(-1, 2).T
    begun: NDArray[np.bool_] = np.less.outer(start, np.where(end < 0, np.iinfo(np.int64).max, end))
    return begun & begun.T


def together(accesses: Floats) -> Floats:
    """The same of the accesses (S, N) of each thread in each stretch of time.

    A thread that makes half as many accesses in a stretch as those that run in the mean ran for half of it.
    """
    runs = accesses >= RUNS * accesses.max(axis=1, initial=0.0)[:, None]
    usual = (accesses * runs).sum(axis=1) / np.maximum(runs.sum(axis=1), 1)
    active = np.divide(accesses, usual[:, None], out=np.zeros_like(accesses), where=usual[:, None] > 0)
    active = np.minimum(active, 1.0)
    ran = active.sum(axis=0)
    answer: Floats = (active.T @ active) / np.where(ran > 0, ran, 1.0)[:, None]
    np.fill_diagonal(answer, 0.0)
    return answer
