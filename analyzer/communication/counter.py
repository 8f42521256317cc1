"""The communication matrix of a stream of samples, with its uncertainty; no parameter to set.

At 1/1000 sampling two samples seldom hit one cache line, so events are counted over blocks, and a block is as
large as it must be for some tens of samples by several threads to meet in it: memory that is used much is
seen finely, memory that is used little coarsely. What "some tens" is matters little, so several budgets are
counted, and what the events of each block stand for (native/communication/leaves.c) is averaged over them.
`benchmarks/analyzer/communication.py` measures it.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.common import UsageError

from .blocks import BlockCounter, check_count
from .combining import Communication, Layer, both_ways, combine
from .leaves import MOST_SAMPLES, LeafCounter

LINE_SHIFT = 6
BUDGETS = (4, 8, 16, 32, 64, 128)  # samples of a block by others than its main thread
FEW_BUDGETS = (16, 64)  # for many threads
EVENT_WINDOW = 512  # samples in a row that belong to one part of the run
PAIR_WINDOW = 256  # samples a thread of one stretch of time
MANY_THREADS = 256  # beyond it fewer groups and budgets, for memory


class CommunicationCounter:
    """Counts communication over samples that come in blocks, in order of time.

    threads: N; exact: every access is in the samples (period 1), so cache lines are counted, exactly;
    weights: how many accesses a sampled load stands for, and a sampled store, one to the other.
    Memory stays bounded whatever comes: `most` samples (0: 8 Mi, of 11 bytes) are kept and counted together,
    then the next ones; an exact count follows a share of the lines beyond 128 MiB of them.
    """

    def __init__(
        self,
        threads: int,
        *,
        exact: bool = False,
        weights: tuple[int, int] = (1, 1),
        most: int = 0,
    ) -> None:
        check_count(threads)
        self.threads = threads
        self._exact = exact
        few = threads <= MANY_THREADS
        self._budgets = BUDGETS if few else FEW_BUDGETS
        self._counter: BlockCounter | LeafCounter
        if exact:
            self._counter = BlockCounter(threads, LINE_SHIFT)
        else:
            self._counter = LeafCounter(
                threads,
                self._budgets,
                groups=8 if few else 2,
                event_window=EVENT_WINDOW,
                pair_window=PAIR_WINDOW * threads,
                weights=weights,
                most=most or MOST_SAMPLES,
            )

    def add(self, thread: ArrayLike, addr: ArrayLike, is_write: ArrayLike) -> None:
        """Count the next samples: equally long, in order of time, going on where the last call ended."""
        self._counter.add(
            np.ascontiguousarray(addr, np.uint64),
            check_threads(thread, self.threads),
            np.ascontiguousarray(np.asarray(is_write, bool)).view(np.uint8),
        )

    def result(self) -> Communication:
        """The matrix of all samples so far."""
        if isinstance(self._counter, LeafCounter):
            counts = self._counter.counts()
            return combine(
                [
                    Layer(
                        f"{budget} samples",
                        both_ways(events),
                        both_ways(transfers),
                        total + total.T,
                    )
                    for budget, events, transfers, total in zip(self._budgets, *counts, strict=True)
                ]
            )
        matrix = both_ways(self._counter.events()[None])[0]
        events = int(matrix.sum()) // 2
        known = float(events > 0)
        return Communication(matrix, np.zeros_like(matrix), known, events, {"64 B": known})


def check_threads(thread: ArrayLike, threads: int) -> NDArray[np.uint16]:
    """Thread numbers as the counters take them; raises UsageError when one is not in 0..threads-1."""
    given = np.asarray(thread)
    if given.ndim != 1:
        raise UsageError("samples are not a flat array", "give equally long one-dimensional arrays")
    if len(given) and (int(given.min()) < 0 or int(given.max()) >= threads):
        raise UsageError(
            f"a sample's thread is not in 0..{threads - 1}", "give 'threads' or drop those samples"
        )
    return np.ascontiguousarray(given, np.uint16)
