"""When the partners change: points in time where threads begin to communicate with others than before.

Events between threads (last writer, blocks of 4 KiB, the single size that suits most programs) are counted in
bins of time; the run is then cut where the shares of the pairs differ, whatever the rate of events.
"""

import numpy as np
from numpy.typing import NDArray

from ..communication.blocks import BlockCounter
from ..samples.trace_samples import SharingSamples
from .changes import MOST_BINS, share_changes
from .timeline import Timeline

SHIFT = 12
MOST_CELLS = 1 << 23
FEWEST_BINS = 16
PAIRS_A_THREAD = 4  # that are followed one by one; all others together are one more


class PartnerCounter:
    """Events between pairs of threads in bins of time, from samples in order of time.

    timeline: whose slices, a whole number of which is a bin, and threads are counted; it may be empty.
    """

    def __init__(self, timeline: Timeline) -> None:
        slices, threads = timeline.per_thread.shape
        self._upper = np.triu_indices(threads, 1)
        pairs = max(1, len(self._upper[0]))
        most = max(FEWEST_BINS, min(MOST_BINS, MOST_CELLS // pairs))
        self.slices_a_bin = -(-slices // most)
        self._start_ns, self._bin_ns = timeline.start_ns, timeline.slice_ns * self.slices_a_bin
        self._cells = np.zeros((-(-slices // self.slices_a_bin), len(self._upper[0])), np.int32)
        self._counter = BlockCounter(threads, SHIFT)

    def add(self, samples: SharingSamples) -> None:
        """Count the next samples, going on where the last call ended."""
        columns = samples.key, samples.thread, samples.is_write, samples.time_ns
        self._counter.add_timed(*columns, self._start_ns, self._bin_ns, self._cells)

    def result(self) -> NDArray[np.int32]:
        """(bins, pairs of threads in the order of numpy.triu_indices) events."""
        return self._cells

    def changes(self) -> list[int]:
        """Slices of the timeline at which the partners change, ascending; right to one bin."""
        cells = self._cells
        most = PAIRS_A_THREAD * max(2, int(self._upper[0].max(initial=0)) + 2)
        if cells.shape[1] > most:
            order = np.argsort(-cells.sum(axis=0), kind="stable")
            rest = cells[:, order[most:]].sum(axis=1, keepdims=True)
            cells = np.hstack([cells[:, order[:most]], rest])
        return [place * self.slices_a_bin for place in share_changes(cells)]
