"""The communication matrix where every access was seen: the transfers that were counted."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import Trace

from .combining import Communication

Matrix = NDArray[np.float64]
Ints = NDArray[np.int64]


class Transfers(msgspec.Struct, frozen=True):
    """Rows of a trace's table, those of memory that tells of communication; equally long arrays.

    middle_ns: of the stretch of time; process: (threads,) number of each thread's; between: whether what
    processes take from each other is counted; left_out: transfers in memory that tells of none.
    """

    middle_ns: Ints
    writer: Ints
    reader: Ints
    events: Ints
    process: NDArray[np.uint64]
    between: bool = False
    left_out: int = 0

    @property
    def partial(self) -> bool:
        """Whether there are several processes, and what these take from each other is not counted."""
        return not self.between and len(np.unique(self.process)) > 1

    def communication(self, start_ns: int | None = None, end_ns: int | None = None) -> Communication:
        """Of the stretches whose middle lies in [start_ns, end_ns); None: from the first, or to the last."""
        threads = len(self.process)
        chosen = np.ones(len(self.events), bool)
        if start_ns is not None:
            chosen &= self.middle_ns >= start_ns
        if end_ns is not None:
            chosen &= self.middle_ns < end_ns
        cell = self.writer[chosen] * threads + self.reader[chosen]
        directed = np.bincount(cell, self.events[chosen], minlength=threads * threads)
        matrix: Matrix = directed.astype(np.float64).reshape(threads, threads)
        matrix = matrix + matrix.T
        events = int(self.events[chosen].sum())
        return Communication(matrix, np.zeros_like(matrix), float(events > 0), events, {"counted": 1.0})

    def with_other_processes(self, sampled: Communication, period: int) -> Communication:
        """The counts, and between processes what samples tell, scaled as within them."""
        counted = self.communication()
        across = self.process[:, None] != self.process[None, :]
        within = float(sampled.matrix[~across].sum())
        scale = counted.matrix.sum() / within if within and counted.events else float(max(period, 1))
        between = np.where(across, sampled.matrix * scale, 0.0)
        share = float(between.sum()) / (float(between.sum()) + float(counted.matrix.sum()) or 1.0)
        return Communication(
            counted.matrix + between,
            np.where(across, sampled.standard_error * scale, 0.0),
            (1 - share) * counted.confidence + share * sampled.confidence,
            counted.events + round(float(between.sum()) / 2),
            {"counted": 1 - share, **{name: share * part for name, part in sampled.weights.items()}},
        )


def transfers_of(trace: Trace, process: NDArray[np.uint64], runtimes: NDArray[np.bool_]) -> Transfers | None:
    """What was counted in memory that tells of communication; None where not every access was seen.

    process: of each thread; runtimes: whether a region is theirs and tells nothing, the last entry for
    memory of no region.
    """
    if trace.meta.get("transfers") != "all":
        return None
    found = trace.arrays(
        "SELECT start_ns + (end_ns - start_ns) // 2 AS middle, writer, reader, region, events FROM transfers"
    )
    middle, writer, reader, region, events = (values.astype(np.int64) for values in found.values())
    threads, regions = len(process), len(runtimes)
    known = (np.minimum(writer, reader) >= 0) & (np.maximum(writer, reader) < threads) & (events > 0)
    region = np.where((region >= 0) & (region < regions), region, -1)
    kept = known & (writer != reader) & ~runtimes[region]
    between = trace.meta.get("transfers_between") == "processes"
    left_out = int(events.sum() - events[kept].sum())
    return Transfers(middle[kept], writer[kept], reader[kept], events[kept], process, between, left_out)
