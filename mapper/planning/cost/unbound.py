"""Threads that nobody binds to one cpu: how far the kernel moves them about, and what lines that costs."""

from functools import cached_property

import numpy as np

from numaplan.machine import Machine, transfers

from ...threads.problem import Floats
from ...workload.use import ThreadUse
from .cpu_sets import Sets

# Of the lines of threads that nobody binds, what comes on top where it is not known how often they sleep:
# they leave their own in caches of cpus that they were on, and take them from there. Else that counts apart.
LEFT = 0.2
WOKEN = 30.0  # of its own lines, that a thread fetches when it is woken on another cpu than before


class Unbound:
    """Of a machine's threads with these uses; lived: (N,) share 0..1 of the run for which each one's process
    is there; cpus: how many a thread may be on that nobody binds."""

    def __init__(self, machine: Machine, use: ThreadUse, lived: Floats, cpus: int) -> None:
        self._machine, self._use, self._lived, self._cpus = machine, use, lived, cpus
        self._ways: dict[tuple[int, ...], float] = {}

    @cached_property
    def moved(self) -> float:
        """The share 0..1 of its time for which the kernel moves a thread about: one that runs alone stays
        where it is, and those of processes that are there for a part of the run less so."""
        made, beside = self._use.accesses, self._use.together.sum(axis=1)
        total = max(float(made.sum()), 1e-300)
        return min(float((made * beside).sum()) / total, 1.0) * float(made @ self._lived) / total

    def left_behind(self, cpus: Sets) -> Floats:
        """(N, N) of each line, what comes on top where both threads may be on any cpu of several nodes, and
        half of that where one may."""
        unknown = self._use.sleeps is None
        anywhere = np.array([unknown and len(own) == self._cpus for own in cpus], np.float64)
        answer: Floats = self.moved * LEFT * np.add.outer(anywhere, anywhere) / 2
        return answer

    def own_lines_ns(self, cpus: Sets) -> float:
        """What all threads wait for lines of their own as they wake on one of several cpus of theirs."""
        if self._use.sleeps is None:
            return 0.0
        return self.moved * WOKEN * float(self._use.sleeps @ [self._way(tuple(own)) for own in cpus])

    def _way(self, cpus: tuple[int, ...]) -> float:
        """ns that a line takes from one of them to another, as chance has it; 0 where it is the same."""
        if len(cpus) < 2:
            return 0.0
        if cpus not in self._ways:
            self._ways[cpus] = float(np.mean(transfers(self._machine, cpus)))
        return self._ways[cpus]
