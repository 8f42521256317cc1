"""Threads moved one by one, as long as what is expected of lines, memory and waiting for cpus falls.

Methods deal threads out by their number; where only some run at a time (servers, pipelines), a place may have
more of them than cpus, or fewer. The price of a move is told from what is known of pairs of threads, so that
thousands of moves are tried; what is found is costed as any other placement.
"""

import numpy as np

from numaplan.machine import ACCESS_NS, OVERLAP, latencies

from ...threads.cost import one_hot
from ...threads.problem import Floats, Nodes
from ..cost.placement import Placement
from ..cost.timed_task import TimedTask
from .improving import pull_of_homes
from .move_waits import MoveWaits

MOST_THREADS = 512  # of which moves are tried: each is one of as many more
MOST_ROUNDS = 4
WORTH = 1e-3  # of the cost, that a move must save


def moved(task: TimedTask, start: Placement) -> Placement | None:
    """From a placement on, with pages placed if they are there; None where nothing better is found."""
    free = np.setdiff1d(np.arange(len(start.places)), np.concatenate([task.fixed, *task.pools]))
    if not 0 < len(free) <= MOST_THREADS or len(task.rows) == 1:
        return None
    best, name = start, f"{start.name}, moved"
    for _ in range(MOST_ROUNDS):
        places = task.cpus.spread(_Moves(task, best, free).search())
        if np.array_equal(places, best.places):
            break
        found = task.first_touched(name, places) if best.pages is None else task.placed(name, places)
        if found.cost.total_ns >= best.cost.total_ns * (1 - WORTH):
            break
        best = found
    return None if best is start else best


class _Moves:
    """A placement's threads, and what each move of one would change; free: who may move."""

    def __init__(self, task: TimedTask, start: Placement, free: Nodes) -> None:
        self.places, self._free = start.places.copy(), free
        self._lines, self._near = (matrix + matrix.T for matrix in (task.use.lines, task.use.near))
        cpus = [len(node.cpus) for node in task.domains.machine.nodes]
        self._count = len(cpus)
        self._ways, self._within = task.ways - np.diag(np.diag(task.ways)), np.diag(task.ways)
        latency = latencies(task.machine)[np.ix_(task.rows, task.rows)] / OVERLAP
        threads = len(self.places)
        if start.pages is None:
            every = np.arange(threads)
            self._touched = task.pages.whole(task.pages.first_touch_traffic(every, threads))
            self._pull = np.outer(np.diag(self._touched), np.diag(latency))
            self._touched -= np.diag(np.diag(self._touched))
        else:
            assert start.pages.homes is not None
            self._touched = np.zeros((threads, threads))
            self._pull = pull_of_homes(task, start.pages.homes)
        self._latency = latency
        own = task.use.accesses * ACCESS_NS + self._prices()[np.arange(threads), self.places]
        self._least = WORTH * start.cost.total_ns
        self._waits = MoveWaits(task.use, cpus, own, free)
        for place in range(self._count):
            self._look_at(place)

    def search(self) -> Nodes:
        """(N,) places after the best move of all, and the next, until none saves anything."""
        for _ in range(len(self.places)):
            move = self._best()
            if move is None:
                break
            thread, place = move
            left, self.places[thread] = int(self.places[thread]), place
            self._look_at(left)
            self._look_at(place)
        return self.places

    def _look_at(self, place: int) -> None:
        """Tell anew who waits on a place."""
        self._waits.look_at(place, np.flatnonzero(self.places == place))

    def _prices(self) -> Floats:
        """(N, places) ns of lines and memory with each thread on each place, where the others are now."""
        others = one_hot(self.places, self._count)
        answer: Floats = self._lines @ others @ self._ways.T + self._near @ others * self._within + self._pull
        answer += self._touched @ others @ self._latency.T + self._touched.T @ others @ self._latency
        return answer

    def _best(self) -> tuple[int, int] | None:
        """The thread and the place that save most."""
        prices, free, waits = self._prices(), self._free, self._waits
        at, rows = self.places[free], np.arange(len(free))
        saved = prices[free, at][:, None] - prices[free]
        # Not less than each saves: who waits is only told exactly of those that may be the best.
        most = saved + (waits.now[at] - waits.least[free, at])[:, None] + waits.now - waits.least[free]
        most[rows, at] = -np.inf
        best, answer = (self._least, np.inf, 0), None
        for move in np.argsort(-most, axis=None, kind="stable").tolist():
            number, place = divmod(move, self._count)
            if most[number, place] + waits.rounded < best[0]:
                break
            thread, left = int(free[number]), int(at[number])
            # Without what is waited for on the place that a thread goes to, which is not less than now.
            before = float(saved[number, place] + (waits.now[left] - waits.changed(thread, left)))
            gain = before + waits.now[place] - waits.changed(thread, place)
            if (gain, before, -move) > best:
                best, answer = (gain, before, -move), (thread, place)
        return answer
