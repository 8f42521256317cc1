"""Loads of threads where every access was seen: counts by stretch of time, not samples."""

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import Trace

from ..memory.page_use import has_page_use, page_use_pieces
from .timeline import Timeline

Floats = NDArray[np.float64]


class CountedLoads(msgspec.Struct, frozen=True):
    """Of each stretch: start_ns, end_ns, and (S, N) what each thread accessed in it, and what reached memory.

    missed: None where that is not known.
    """

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    accesses: Floats
    missed: Floats | None

    def between(self, line: Timeline, counted: Floats) -> Callable[[int, int], Floats]:
        """(start, end) in slices of a timeline -> (N,) what was counted in them; stretches are even."""

        def loads(start: int, end: int) -> Floats:
            first = line.start_ns + start * line.slice_ns if start > 0 else np.iinfo(np.int64).min // 2
            last = (
                line.start_ns + end * line.slice_ns
                if end < len(line.per_thread)
                else np.iinfo(np.int64).max // 2
            )
            inside = np.minimum(self.end_ns, last) - np.maximum(self.start_ns, first)
            share = np.clip(inside / np.maximum(self.end_ns - self.start_ns, 1), 0.0, 1.0)
            answer: Floats = share @ counted
            return answer

        return loads


def counted_loads(trace: Trace, threads: int, each: float) -> CountedLoads | None:
    """What was counted of a trace's threads; None where not every access was seen.

    each: accesses that count as one.
    """
    if not has_page_use(trace):
        return None
    known, sums = True, dict[tuple[int, int], Floats]()
    for use in page_use_pieces(trace, threads):
        known &= not bool((use.missed < 0).any())
        stretches, place = np.unique(np.stack([use.start_ns, use.end_ns]), axis=1, return_inverse=True)
        count = stretches.shape[1]
        cell = place.ravel() * threads + use.thread
        every = np.stack([np.bincount(cell, part, count * threads) for part in (use.accesses, use.missed)])
        for number, key in enumerate(map(tuple, stretches.T.tolist())):
            own = every.reshape(2, count, threads)[:, number] / each
            sums[key] = sums[key] + own if key in sums else own
    if not sums:
        return None
    borders = np.array(list(sums), np.int64)
    counted: Floats = np.stack(list(sums.values())).astype(np.float64)
    return CountedLoads(borders[:, 0], borders[:, 1], counted[:, 0], counted[:, 1] if known else None)
