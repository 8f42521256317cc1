"""Which threads belong together, by the mapper, and when the mapper must be asked again.

A grouping is kept while it is as good as when it was solved: the share of communication between groups may
have grown by SLACK, the unbalance of their loads by as much of a fair load. It is solved again then, after
AGAIN decisions, and when threads or seats changed; the search starts from where threads are and from the
grouping of before.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...observation import Floats, Ints

OBJECTIVES = ("balanced", "remote")
SLACK = 0.05
AGAIN = 8


class Grouping(NamedTuple):
    """group: (N,) node row of each thread `tids`, nodes standing for groups; across, off: share of
    communication between groups and unbalance of their loads when it was solved; decisions: since then."""

    tids: Ints
    seats: Ints
    group: Ints
    across: float
    off: float
    decisions: int = 0


@dataclass(frozen=True)
class GroupingProblem:
    """comm: (N, N) and loads: (N,) of the threads `tids`; seats: (K,), N or more; before: the last answer."""

    tids: Ints
    seats: Ints
    comm: Floats
    loads: Floats
    distances: Floats
    objective: str
    before: Grouping | None = None

    def grouping(self, nodes: Ints) -> Grouping:
        """The grouping of before, or a new one; nodes: (N,) where the threads are."""
        before = self.before
        if before is None or not self._is_good(before):
            group = self._solve(nodes, before) if self._matters else nodes
            return Grouping(self.tids, self.seats, group, self.across(group), self.unbalance(group))
        return before._replace(decisions=before.decisions + 1)

    def across(self, group: Ints) -> float:
        """The share of communication that goes between groups."""
        total = float(self.comm.sum())
        return 1.0 - float(self.comm[group[:, None] == group].sum()) / total if total > 0 else 0.0

    def unbalance(self, group: Ints) -> float:
        """How far the load of a group is off its fair share at most, relative to that."""
        seated = np.flatnonzero(self.seats)
        fair = self.loads.sum() * self.seats[seated] / self.seats.sum()
        sums = np.bincount(group, self.loads, minlength=len(self.seats))[seated]
        return float(np.abs(sums / fair - 1.0).max()) if fair.all() else 0.0

    @property
    def _matters(self) -> bool:
        """Whether one grouping can be better than another: somebody communicates, or loads are to be even."""
        return self.objective == "balanced" or bool(self.comm.any())

    def _is_good(self, before: Grouping) -> bool:
        same = np.array_equal(before.tids, self.tids) and np.array_equal(before.seats, self.seats)
        if not same or before.decisions >= AGAIN or self.across(before.group) > before.across + SLACK:
            return False
        return self.objective != "balanced" or self.unbalance(before.group) <= before.off + SLACK * (
            1.0 + before.off
        )

    def _solve(self, nodes: Ints, before: Grouping | None) -> Ints:
        """Idle seats get threads that talk to nobody, so that any number up to the seats may share a node."""
        from ....threads.mapping import map_threads

        count, total = len(self.tids), int(self.seats.sum())
        matrix, loads = np.zeros((total, total)), np.zeros(total)
        matrix[:count, :count], loads[:count] = self.comm, self.loads
        rows = np.flatnonzero(self.seats)
        first = np.concatenate([[0], np.cumsum(self.seats[rows])])
        machine = {
            "schema": "numaplan/machine/1",
            "nodes": [
                {"id": int(row), "cpus": list(range(first[at], first[at + 1]))} for at, row in enumerate(rows)
            ],
            "distances": np.maximum(self.distances[np.ix_(rows, rows)], 1.0).tolist(),
        }
        known = [nodes, before.group] if before and np.array_equal(before.tids, self.tids) else [nodes]
        starts = [self._filled(places) for places in known if self._fits(places)]
        places = map_threads(matrix, loads, machine, objective=self.objective, effort="fast", starts=starts)
        return places[:count]

    def _fits(self, places: Ints) -> bool:
        return bool((np.bincount(places, minlength=len(self.seats)) <= self.seats).all())

    def _filled(self, places: Ints) -> Ints:
        """With the idle seats' threads."""
        left = self.seats - np.bincount(places, minlength=len(self.seats))
        return np.concatenate([places, np.repeat(np.arange(len(self.seats)), left)])
