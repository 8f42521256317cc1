"""How long threads wait for the cpus of places when one of them moves: told exactly, and at least.

To tell it exactly takes all looks of all threads of a place. For X that run at once the mean of
X max(X - cpus, 0) is no less than that of X (X - cpus), nor than 0: that is told from sums of the threads
that are there and the looks of the one that moves, and is exact where each thread runs or does not.
"""

from collections.abc import Sequence

import numpy as np

from ...threads.problem import Floats, Nodes
from ...workload.use import ThreadUse
from ..cost.waiting import FAR, chances, waiting_of

TINY = 1e-300
NEARLY = 0.999  # of FAR, within which sums that are rounded otherwise are not beyond it
ROUNDED = 1e-9  # of what threads have to wait for, that sums of it differ by


class MoveWaits:
    """use: of the threads; cpus: of each place; own: (N,) ns that each thread runs, of which it waits for a
    cpu as long again for each that is before it; free: those that may move."""

    def __init__(self, use: ThreadUse, cpus: Sequence[int], own: Floats, free: Nodes) -> None:
        self._use, self._cpus, self._own, self._free = use, cpus, own, free
        self._here: list[Nodes] = [np.empty(0, np.int64)] * len(cpus)
        self._exact: list[dict[int, float]] = [{} for _ in cpus]
        self.now = np.zeros(len(cpus))  # ns, on each place
        self.least = np.zeros((len(own), len(cpus)))  # ns, with a thread there that is not, or without one
        self.rounded = ROUNDED * float(own.sum())
        if (active := use.activity) is not None:
            ran = active.ran
            self._each = np.divide(own, ran, out=np.zeros(len(own)), where=ran > 0)

    def look_at(self, place: int, here: Nodes) -> None:
        """Tell anew who waits on a place, where these threads are now."""
        self._here[place], self._exact[place] = here, {}
        self.now[place] = self._waits(place, here)
        if self._use.activity is not None:
            self._tell_least(place)
            return
        self.least[:, place] = self.now[place]  # more do not wait for less
        for thread in np.intersect1d(self._free, here).tolist():
            self.least[thread, place] = self.changed(thread, place)

    def changed(self, thread: int, place: int) -> float:
        """ns on a place without a thread that is there, or with one that is not."""
        found = self._exact[place]
        if thread not in found:
            here = self._here[place]
            rest = here[here != thread]
            if len(rest) == len(here):
                found[thread] = self._waits(place, np.append(here, thread))
            else:
                found[thread] = self._waits(place, rest) if self.now[place] > 0 else 0.0
        return found[thread]

    def _waits(self, place: int, here: Nodes) -> float:
        """ns that threads wait for cpus of a place."""
        each = waiting_of(self._use, here, self._cpus[place])
        return float(self._own[here] @ each) / self._cpus[place]

    def _tell_least(self, place: int) -> None:
        """The same of a place at least, by stretches of the run."""
        active, here, cpus = self._use.activity, self._here[place], self._cpus[place]
        assert active is not None
        running = active.of(here)
        mean, square = running.sum(axis=1), np.einsum("st,st->s", running, running)
        much = running @ self._each[here]
        partly = _Partly(running, mean, mean - square, cpus)
        one_less = set(here.tolist())
        for thread in self._free.tolist():
            sign = -1.0 if thread in one_less else 1.0
            own = active.running[:, thread]
            runs = np.maximum(mean + sign * own, 0.0)
            spread = np.maximum(runs - square - sign * own * own, 0.0)
            waiting = np.maximum(spread / np.maximum(runs, TINY) + runs - cpus, 0.0)
            partly.raise_to(waiting, sign, own, runs, spread)
            wanted = much + (sign * self._each[thread]) * own
            self.least[thread, place] = (active.lasts * waiting) @ wanted / cpus
        if self.now[place] <= 0:
            self.least[here, place] = 0.0  # as `changed` takes it


class _Partly:
    """Stretches in which threads of a place run in part: how many wait there is more than the mean tells.

    running: (S, T) of the threads; mean, spread: (S,) of how many run; cpus: of the place.
    """

    def __init__(self, running: Floats, mean: Floats, spread: Floats, cpus: int) -> None:
        self._rows = rows = np.flatnonzero(spread > ROUNDED)
        self._cpus, few, mean = cpus, np.arange(cpus), mean[rows]
        spread, chance = spread[rows], chances(running[rows], cpus)
        # Of X that run the means of X max(X - cpus, 0), of the same of X + 1, and of what it grows by so.
        self._now = spread + mean * (mean - cpus) + chance @ (few * (cpus - few))
        self._more = spread + (mean + 1) * (mean + 1 - cpus) + chance @ ((few + 1) * (cpus - 1 - few))
        self._grows = 2 * mean + 1 - cpus - chance @ (2 * few + 1 - cpus)

    def raise_to(self, waiting: Floats, sign: float, own: Floats, runs: Floats, spread: Floats) -> None:
        """What waits at least with one more thread (sign 1) or one less (-1) that runs so far; runs, spread:
        of all then."""
        rows = self._rows
        own, runs = own[rows], runs[rows]
        near = np.abs(runs - self._cpus) < NEARLY * FAR * np.sqrt(spread[rows])
        # Without the thread fewer run, of whom one more makes no more wait than of all.
        change = self._more - self._now if sign > 0 else self._grows
        over = (self._now + sign * own * change) / np.maximum(runs, TINY)
        waiting[rows] = np.maximum(waiting[rows], np.where(near, over, 0.0))
