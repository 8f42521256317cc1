"""The accesses of a workload that a placement is judged by: what reaches memory, where that is known."""

from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts

from ..memory.traffic import first_touches, planned_traffic
from ..threads.problem import Floats, Nodes

LITTLE = 1e-3  # of all accesses in what decides where pages go


class CountedPages:
    """accesses: of any kind; stats: those of them that count."""

    def __init__(self, accesses: PageCounts) -> None:
        self.accesses = accesses
        memory = accesses.memory_accesses
        self.by_memory = memory is not None
        self.stats = accesses
        if memory is not None:
            used, begun = memory
            self.stats = msgspec.structs.replace(
                accesses, accesses=used, before=begun, elsewhere=accesses.elsewhere_missed
            )

    @cached_property
    def deciding(self) -> PageCounts:
        """What decides where pages go: accesses, each with the share of it that is expected to count.

        In the unit of accesses, by whose number it is judged what is chance; a little of all accesses decides
        where nothing was seen to miss.
        """
        every, counted = self.accesses, self.stats
        made, counting = float(every.accesses.sum()), float(counted.accesses.sum())
        if counting <= 0 or made <= 0:
            return every
        weight = counted.accesses * ((1 - LITTLE) * made / counting) + LITTLE * every.accesses
        return msgspec.structs.replace(every, accesses=weight)

    def begun_by(self, share: float, threads: int) -> NDArray[np.bool_]:
        """(N,) threads of whose accesses at least so much is from before the others started."""
        stats, count = self.stats, threads
        known = stats.thread >= 0
        before = np.zeros(len(stats.thread)) if stats.before is None else stats.before
        made, begun = (
            np.bincount(stats.thread[known], part[known], count) for part in (stats.all_accesses, before)
        )
        return (begun > 0) & (begun >= share * made)

    @cached_property
    def first_touches(self) -> PageCounts:
        """Accesses to pages whose first touch is known."""
        return first_touches(self.accesses)

    @cached_property
    def _touched(self) -> PageCounts:
        """What counts, of these pages."""
        known, stats = self.first_touches, self.stats
        every = self.accesses.all_accesses
        kept = np.divide(known.all_accesses, every, out=np.zeros(len(every)), where=every > 0)
        return msgspec.structs.replace(
            stats, accesses=stats.all_accesses * kept, before=None, toucher=known.toucher
        )

    def first_touch_traffic(self, rows: Nodes, nodes: int) -> Floats:
        """(N, K) what each thread accesses of each node's memory where that is touched first.

        rows: (N,) row of each thread's node; nodes: how many there are.
        """
        return planned_traffic(self._touched, {}, rows, nodes)[0]

    def whole(self, traffic: Floats) -> Floats:
        """(N, K) the same for all that each thread accesses, where it is not known of some where it is."""
        stats = self.stats
        known = (stats.thread >= 0) & (stats.thread < len(traffic))
        made = np.bincount(stats.thread[known], stats.all_accesses[known], len(traffic))
        if stats.elsewhere is not None:
            made = made + stats.elsewhere.sum(axis=1)
        seen = traffic.sum(axis=1)
        shares = np.full_like(traffic, 1.0 / traffic.shape[1])
        np.divide(traffic, seen[:, None], out=shares, where=seen[:, None] > 0)
        answer: Floats = shares * (np.maximum(made, seen) * stats.period)[:, None]
        return answer


def samples_that_count(stats: PageCounts) -> float:
    """How many samples tell of what counts."""
    if stats.missed is None:
        counted, apart = stats.all_accesses, stats.elsewhere
    else:
        counted, apart = stats.missed, stats.elsewhere_missed
    return float(counted.sum()) + (0.0 if apart is None else float(apart.sum()))
