"""What reaches memory under last-level caches of several sizes, as emulation tells (`reach` of samples).

A recording is of a small input. With a larger one a thread's share of the last-level cache is smaller: what
would reach memory then is what a cache misses that is smaller in the same ratio. A ratio is bytes of a cache
over those of the machine's, 1 or less, and is taken for the nearest of the sizes that were modelled.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.machine import size_word
from numaplan.profiler import LEVEL_CODE, Trace

DRAM_LEVELS = tuple(LEVEL_CODE[name] for name in ("local_dram", "remote_dram", "pmem", "cxl"))
_IS_DRAM = np.isin(np.arange(len(LEVEL_CODE)), DRAM_LEVELS)
_COUNTER = "llc_misses_at_"


class CacheSizes(msgspec.Struct, frozen=True):
    """Accesses that would reach memory, by thread and size of the last-level cache.

    sizes: bytes of each of K caches, ascending; the last is the machine's. missed: (N, K) accesses of each
    thread that a cache of that size misses, exact counts of the whole run (of a part of one: what its samples
    say); accesses: (N,) all of each thread's. levels: which size the levels of the trace's samples are of;
    footprint: bytes of memory that the program touched, 0: not known. larger, missed_larger: the same of
    caches larger than the machine's, as threads have whose neighbours are moved away.
    """

    sizes: tuple[int, ...]
    missed: NDArray[np.float64]
    accesses: NDArray[np.float64]
    levels: int
    footprint: int
    larger: tuple[int, ...] = ()
    missed_larger: NDArray[np.float64] = np.zeros((0, 0))

    @property
    def ratios(self) -> NDArray[np.float64]:
        """(K,) of each size: bytes over those of the machine's cache, ascending to 1."""
        return np.array(self.sizes, np.float64) / self.sizes[-1]

    def place(self, ratio: float) -> int:
        """Which of the sizes stands for a ratio, from 0."""
        return nearest_size(self.sizes, ratio)

    def misses(self, ratio: float) -> NDArray[np.float64]:
        """(N,) accesses of each thread that reach memory at a ratio."""
        answer: NDArray[np.float64] = self.missed[:, self.place(ratio)]
        return answer

    def ratio_for(self, footprint: int) -> float:
        """The ratio that stands for an input of so many bytes, at most 1."""
        return min(1.0, self.footprint / max(1, footprint)) if self.footprint else 1.0


def modelled_sizes(trace: Trace, key: str = "llc_sizes") -> tuple[int, ...]:
    """Bytes of the last-level caches that `reach` tells of, ascending; none where it is not known."""
    words = trace.meta.get(key, "").split(":")
    if not all(word.isascii() and word.isdecimal() and len(word) < 16 for word in words):
        return ()
    sizes = tuple(map(int, words))
    return sizes if sizes == tuple(sorted({*sizes} - {0})) else ()


def nearest_size(sizes: Sequence[int], ratio: float) -> int:
    """Which of some sizes is nearest to the largest one's share, by the factor between them."""
    wanted = np.log(sizes[-1] * min(max(ratio, 1e-9), 1.0))
    return int(np.argmin(np.abs(np.log(np.array(sizes, np.float64)) - wanted)))


def place_of(trace: Trace, ratio: float) -> int:
    """Which of a trace's sizes stands for a ratio; raises ValueError where only one was modelled, or none."""
    if not (sizes := modelled_sizes(trace)):
        raise ValueError("one size of caches only")
    return nearest_size(sizes, ratio)


def cache_sizes(trace: Trace, whole: Trace | None = None) -> CacheSizes | None:
    """What was counted of a trace's threads; None where only one size was modelled, or none.

    whole: the trace that it is a part of: of larger caches a thread's part misses as much less than the whole
    as of the machine's.
    """
    sizes = modelled_sizes(trace)
    if not sizes:
        return None
    threads = 1 + max((row.thread for row in trace.thread_rows), default=-1)
    larger = modelled_sizes(trace, "llc_larger")
    columns = {f"{_COUNTER}{size_word(size)}": place for place, size in enumerate((*sizes, *larger))}
    missed, accesses = np.zeros((threads, len(columns))), np.zeros(threads)
    for thread, event, value in trace.rows("SELECT thread, event, sum(value) FROM counters GROUP BY ALL"):
        if 0 <= thread < threads and event in columns:
            missed[thread, columns[event]] = value
        elif 0 <= thread < threads and event in ("loads", "stores"):
            accesses[thread] += value
    if not accesses.any():  # a part of a recording, which has no counters
        period = float(max(1, int(trace.meta.get("period", "0"))))
        rows = "SELECT thread, reach, count(*) FROM samples WHERE reach >= 0 GROUP BY ALL"
        for thread, past, count in trace.rows(rows):
            if 0 <= thread < threads:
                missed[thread, :past] += count * period
                accesses[thread] += count * period
    chosen = int(trace.meta.get("for_llc", "0"))
    levels = sizes.index(chosen) if chosen in sizes else len(sizes) - 1
    footprint, own = int(trace.meta.get("footprint", "0")), len(sizes)
    beyond = missed[:, own : own + len(larger)]
    if larger and trace.part is not None:
        known = cache_sizes(whole) if whole is not None else None
        if known is None:
            larger, beyond = (), missed[:, :0]
        else:
            mine = missed[:, own - 1, None]
            share = mine / np.maximum(known.missed[:, -1:], 1.0)
            beyond = np.minimum(known.missed_larger * share, mine)
    return CacheSizes(sizes, missed[:, :own], accesses, levels, footprint, larger, beyond)


def levels_at(level: NDArray[np.uint8], reach: NDArray[np.int8], place: int) -> NDArray[np.uint8]:
    """(samples,) level codes under the size at a place: what it misses comes from memory, the rest does not.

    Memory is called local where the recording did not see that it is remote. Samples whose reach is not known
    keep their level.
    """
    memory = np.where(_IS_DRAM[level], level, LEVEL_CODE["local_dram"])
    held = np.where(_IS_DRAM[level], LEVEL_CODE["l3"], level)
    answer = np.where(reach > place, memory, np.where(reach < 0, level, held))
    return answer.astype(np.uint8)
