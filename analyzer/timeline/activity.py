"""When each thread runs, as far as its accesses show it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..samples.trace_samples import TraceSamples

STRETCHES = 64  # of the run: few enough that samples show who runs in each
MOST_CHANGES = 256  # of threads, from one that ended to one that begins: of more, stretches have few samples
RUNS = 0.1  # of the busiest thread's accesses, from which a thread counts among those that run

Floats = NDArray[np.float64]


def activity(samples: TraceSamples, lives: Sequence[tuple[int, int]]) -> tuple[Floats, Floats]:
    """(S,) how long each stretch of the run is, in ns, and (S, N) how far each thread runs in it, 0..1.

    lives: as of `living_together`. No stretch has the end of one thread and then the beginning of another,
    where these are few.
    """
    edges = _edges(samples.first_ns, max(samples.last_ns + 1, samples.first_ns + 1), lives)
    counts = np.zeros((len(edges) - 1, samples.threads))
    for columns in samples.columns():
        stretch = np.searchsorted(edges, columns["time_ns"], side="right") - 1
        np.add.at(counts, (np.clip(stretch, 0, len(counts) - 1), columns["thread"]), 1.0)
    lasts = np.diff(edges)
    lived = _lived(edges, lives) / lasts[:, None] if len(lives) else np.ones_like(counts)
    return lasts, running(counts, lived)


def _edges(first: int, end: int, lives: Sequence[tuple[int, int]]) -> Floats:
    """Where stretches of a run from `first` to `end` begin, and its end."""
    answer: Floats = np.linspace(first, end, STRETCHES + 1)
    begins, ends = np.array(lives, np.float64).reshape(-1, 2).T
    times = np.concatenate([ends[ends >= 0], begins])
    begun = np.repeat([False, True], [len(times) - len(begins), len(begins)])
    order = np.argsort(times, kind="stable")
    changes = times[order[1:]][begun[order[1:]] & ~begun[order[:-1]]]
    changes = changes[(changes > first) & (changes < end)]
    if len(changes) <= MOST_CHANGES:
        answer = np.union1d(answer, changes)
    return answer


def _lived(edges: Floats, lives: Sequence[tuple[int, int]]) -> Floats:
    """(S, N) how long each thread lives of each stretch between the edges."""
    begins, ends = np.array(lives, np.float64).reshape(-1, 2).T
    ends = np.where(ends < 0, edges[-1], ends)
    answer: Floats = np.minimum.outer(edges[1:], ends) - np.maximum.outer(edges[:-1], begins)
    return np.maximum(answer, 0.0)


def living_together(lives: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """(N, N) whether two threads live at the same time; lives: (start, end) in ns of each, end -1: to the end
    of the run. A stretch of time in which one ends and the other begins shows both."""
    start, end = np.array(lives, np.int64).reshape(-1, 2).T
    begun: NDArray[np.bool_] = np.less.outer(start, np.where(end < 0, np.iinfo(np.int64).max, end))
    return begun & begun.T


def running(accesses: Floats, lived: Floats) -> Floats:
    """(S, N) how far threads run, 0..1, that make (S, N) accesses in stretches of time.

    lived: (S, N) what part of each stretch each thread lives. A thread that makes half as many accesses while
    it lives as those that run in the mean ran for half of that.
    """
    after = (lived <= 0) & (accesses > 0)  # its life, as of what a thread does at its end
    alone = 2 * (accesses * after).sum(axis=1, keepdims=True) >= accesses.sum(axis=1, keepdims=True)
    lived, after = np.where(after & alone, 1.0, lived), after & ~alone
    # By a few accesses in a very short life the others would seem not to run.
    least = 1.0 / np.maximum(np.count_nonzero(lived, axis=1), 1)[:, None]
    rate = np.where(after, 0.0, accesses / np.maximum(lived, least))
    runs = ~after & (rate >= RUNS * rate.max(axis=1, initial=0.0)[:, None])
    short = runs & (lived < least)
    little = (lived * short).sum(axis=1)[:, None] < least
    runs &= ~(short & little) | ~np.any(runs & ~short, axis=1, keepdims=True)
    usual = (accesses * runs).sum(axis=1) / np.maximum((lived * runs).sum(axis=1), 1e-300)
    ran = np.divide(accesses, usual[:, None], out=np.zeros_like(accesses), where=usual[:, None] > 0)
    answer: Floats = np.minimum(ran, np.where(after, least, lived))
    return answer


def together(lasts: Floats, running: Floats) -> Floats:
    """(N, N) how far the other thread (column) runs while the thread does, 0..1; 0 on the diagonal.

    lasts, running: as `activity` tells them.
    """
    ran = lasts @ running
    answer: Floats = (running.T @ (lasts[:, None] * running)) / np.where(ran > 0, ran, 1.0)[:, None]
    np.fill_diagonal(answer, 0.0)
    return answer
