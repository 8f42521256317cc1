"""CMLB: greedy groups by communication that refuse a thread whose load would spoil the group's balance.

Source: [CMLB], Algorithms 2-5, with corrections of misprints without which the paper's own figure does not
come out: the early return of Algorithm 5 (lines 7-11) is not taken, a group makes per-1 picks, and the
seats counted are those left after the candidate's own. Where the paper is silent: ties go to the lowest
thread, sizes of nodes are those of the problem. O(N^2 log N).
"""

import numpy as np
from numpy.typing import NDArray

from ..problem import Floats, Nodes, Problem

Flags = NDArray[np.bool_]


def cmlb(problem: Problem) -> Nodes:
    """Nodes by CMLB."""
    left = _Left(problem)
    places = np.empty(problem.threads, dtype=np.int64)
    for node, (size, target) in enumerate(zip(problem.sizes.tolist(), problem.targets.tolist(), strict=True)):
        places[_one_group(problem, left, size, target)] = node
    return places


class _Left:
    """The threads that are in no group yet: flags (N,), and their loads in ascending order."""

    def __init__(self, problem: Problem) -> None:
        self.loads = problem.loads
        self.free = np.ones(problem.threads, dtype=bool)
        self.ordered = np.sort(problem.loads)

    def take(self, thread: int) -> float:
        """Remove a thread; returns its load."""
        load = float(self.loads[thread])
        self.free[thread] = False
        at = int(self.ordered.searchsorted(load))
        self.ordered[at:-1] = self.ordered[at + 1 :]
        self.ordered = self.ordered[:-1]
        return load


def _one_group(problem: Problem, left: _Left, size: int, target: float) -> list[int]:
    if not size:
        return []
    group = [int(np.argmax(left.free))]
    load = left.take(group[0])
    sums = np.where(left.free, problem.comm[group[0]], -np.inf)
    while len(group) < size:
        chosen = _choice(sums, left, target - load, size - len(group) - 1, target)
        group.append(chosen)
        sums += problem.comm[chosen]
        sums[chosen] = -np.inf
        load += left.take(chosen)
    return group


def _choice(sums: Floats, left: _Left, room: float, seats: int, target: float) -> int:
    """The first candidate of the rank that fits, or its head (Algorithm 4); sums: -inf for those gone."""
    fits = _Fitting(left.ordered, room, seats, target)
    head = int(sums.argmax())
    if fits(float(left.loads[head])):  # nearly always
        return head
    fitting = left.free & fits.all(left.loads)
    return int(np.where(fitting, sums, -1.0).argmax()) if fitting.any() else head


class _Fitting:
    """Which candidates leave room that the seats after them can fill (Algorithm 5).

    ordered: the loads of all candidates, ascending; room: target minus the group's load; seats: free after
    the candidate.
    """

    def __init__(self, ordered: Floats, room: float, seats: int, target: float) -> None:
        self.room, self.slack = room, 1e-9 * max(1.0, abs(target))
        more = len(ordered) > seats
        # The sums of the extreme loads, the last of them, and who follows when the candidate is one of them.
        self.lowest = float(ordered[:seats].sum())
        self.highest = float(ordered[len(ordered) - seats :].sum())
        self.low, self.after_low = float(ordered[seats - 1]), float(ordered[seats]) if more else 0.0
        self.high, self.after_high = float(ordered[-seats]), float(ordered[-seats - 1]) if more else 0.0
        self.seats = seats

    def __call__(self, load: float) -> bool:
        """Whether one candidate fits."""
        left = self.room - load
        if self.seats == 0:
            return abs(left) <= self.slack
        least = self.lowest - load + self.after_low if load <= self.low else self.lowest
        most = self.highest - load + self.after_high if load >= self.high else self.highest
        return least - self.slack <= left <= most + self.slack

    def all(self, loads: Floats) -> Flags:
        """The same of many candidates."""
        left = self.room - loads
        if self.seats == 0:
            return np.abs(left) <= self.slack
        least = np.where(loads <= self.low, self.lowest - loads + self.after_low, self.lowest)
        most = np.where(loads >= self.high, self.highest - loads + self.after_high, self.highest)
        return (least - self.slack <= left) & (left <= most + self.slack)
