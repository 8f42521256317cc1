"""The published ways of counting communication in samples, for comparison: one stable sort by block each."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]


class SortedSamples:
    """Samples ordered by block, within a block by time (they come in order of time).

    thread, is_write, time: sorted; start: for each sample the position of the first one in its block.
    """

    def __init__(
        self,
        block: NDArray[np.uint64],
        thread: NDArray[np.uint16],
        is_write: NDArray[np.bool_],
        time: NDArray[Any],
    ) -> None:
        order = np.argsort(block, kind="stable")
        sorted_block = block[order]
        self.thread, self.is_write, self.time = thread[order], is_write[order], time[order]
        place = np.arange(len(order))
        first = np.ones(len(order), bool)
        first[1:] = sorted_block[1:] != sorted_block[:-1]
        self.start: Index = np.maximum.accumulate(np.where(first, place, 0)) if len(order) else place
        self._place = place

    def previous(self, marked: NDArray[np.bool_]) -> Index:
        """Position of the latest earlier marked sample of each sample's block, -1 where there is none."""
        latest = np.full(len(marked), -1, np.int64)
        latest[1:] = np.maximum.accumulate(np.where(marked, self._place, -1))[:-1]
        return np.where(latest >= self.start, latest, -1)

    def others(self, partner: Index) -> tuple[Index, Index]:
        """(sample, partner) positions of the samples whose partner is there and another thread."""
        mine = np.flatnonzero(partner >= 0)
        yours = partner[mine]
        different = self.thread[mine] != self.thread[yours]
        return mine[different], yours[different]


def consecutive(samples: SortedSamples, *, with_write: bool, within: float = np.inf) -> tuple[Index, Index]:
    """Neighbouring samples of a block by different threads, one of them a write if asked, close in time."""
    mine, yours = samples.others(samples.previous(np.ones(len(samples.thread), bool)))
    good = samples.time[mine] - samples.time[yours] <= within
    if with_write:
        good &= samples.is_write[mine] | samples.is_write[yours]
    return mine[good], yours[good]


def last_write(samples: SortedSamples) -> tuple[Index, Index]:
    """Each sample with the latest earlier write in its block, where that is by another thread."""
    return samples.others(samples.previous(samples.is_write))


def last_two_writers(samples: SortedSamples) -> tuple[Index, Index]:
    """Each sample with the last two different writers of its block that are not its own thread."""
    last = samples.previous(samples.is_write)
    # The first write of each run of writes by one thread; the run before the last one has the second writer.
    before = np.where(last >= 0, samples.thread[last].astype(np.int64), -1)
    opens = samples.is_write & (before != samples.thread)
    run = samples.previous(opens)
    second = np.where(run >= 0, last[run], -1)
    pairs = [samples.others(last), samples.others(second)]
    return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])


def count_pairs(samples: SortedSamples, pairs: tuple[Index, Index], threads: int) -> Matrix:
    """(N, N) symmetric counts of pairs of samples."""
    one, other = (samples.thread[positions].astype(np.int64) for positions in pairs)
    directed = np.bincount(one * threads + other, minlength=threads * threads).astype(np.float64)
    matrix = directed.reshape(threads, threads)
    return matrix + matrix.T
