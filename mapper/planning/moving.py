"""Threads moved one by one, as long as what is expected of lines, memory and waiting for cpus falls.

Methods deal threads out by their number; where only some run at a time (servers, pipelines), a place may have
more of them than cpus, or fewer. The price of a move is told from what is known of pairs of threads, so that
thousands of moves are tried; what is found is costed as any other placement.
"""

import numpy as np

from numaplan.machine import ACCESS_NS, OVERLAP, latencies

from ..threads.cost import one_hot
from ..threads.problem import Floats, Nodes
from .improving import pull_of_homes
from .placement import Placement
from .timed_task import TimedTask
from .waiting import waiting_of

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
        places = task.cpus.spread(_Moves(task, best).search(free))
        if np.array_equal(places, best.places):
            break
        found = task.first_touched(name, places) if best.pages is None else task.placed(name, places)
        if found.cost.total_ns >= best.cost.total_ns * (1 - WORTH):
            break
        best = found
    return None if best is start else best


class _Moves:
    """A placement's threads, and what each move of one would change."""

    def __init__(self, task: TimedTask, start: Placement) -> None:
        self.places = start.places.copy()
        self._use = task.use
        self._lines, self._near = (matrix + matrix.T for matrix in (task.use.lines, task.use.near))
        self._cpus = [len(node.cpus) for node in task.domains.machine.nodes]
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
        self._own = task.use.accesses * ACCESS_NS + self._prices()[np.arange(threads), self.places]
        self._least = WORTH * start.cost.total_ns
        self._waited = np.zeros(len(self._cpus))  # ns, on each place
        self._left = np.zeros(threads)  # ns of it that are saved where a thread leaves its own
        for place in range(len(self._cpus)):
            self._look_at(place)

    def search(self, free: Nodes) -> Nodes:
        """(N,) places after the best move of all, and the next, until none saves anything; free: who may."""
        for _ in range(len(self.places)):
            move = self._best(free)
            if move is None:
                break
            thread, place = move
            left, self.places[thread] = int(self.places[thread]), place
            self._look_at(left)
            self._look_at(place)
        return self.places

    def _look_at(self, place: int) -> None:
        """Tell anew who waits on a place."""
        here = np.flatnonzero(self.places == place)
        self._waited[place] = self._waits(place, here)
        for thread in here.tolist():
            rest = self._waits(place, here[here != thread]) if self._waited[place] > 0 else 0.0
            self._left[thread] = self._waited[place] - rest

    def _prices(self) -> Floats:
        """(N, places) ns of lines and memory with each thread on each place, where the others are now."""
        others = one_hot(self.places, len(self._cpus))
        answer: Floats = self._lines @ others @ self._ways.T + self._near @ others * self._within + self._pull
        answer += self._touched @ others @ self._latency.T + self._touched.T @ others @ self._latency
        return answer

    def _best(self, free: Nodes) -> tuple[int, int] | None:
        """The thread and the place that save most."""
        prices = self._prices()
        saved = prices[free, self.places[free]][:, None] - prices[free]
        # Without what is waited for on the place that a thread goes to, which is not less than now.
        saved += self._left[free][:, None]
        best, answer = self._least, None
        for at in np.argsort(-saved, axis=None, kind="stable").tolist():
            number, place = divmod(at, len(self._cpus))
            thread = int(free[number])
            if saved[number, place] <= best:
                break
            if place == self.places[thread]:
                continue
            here = np.append(np.flatnonzero(self.places == place), thread)
            gain = float(saved[number, place]) + self._waited[place] - self._waits(place, here)
            if gain > best:
                best, answer = gain, (thread, place)
        return answer

    def _waits(self, place: int, here: Nodes) -> float:
        """ns that threads wait for cpus of a place."""
        each = waiting_of(self._use, here, self._cpus[place])
        return float(self._own[here] @ each) / self._cpus[place]
