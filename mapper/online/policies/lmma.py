"""LMMA: move pages of high latency to their users, unless those are busy ([IMAR], 4.4).

Where no latencies are measured a page's is taken by distance, relative to what it would be on the node that
prefers it, and no node is busy.

The ageing of samples (Eq. 7) is in the touches' weights. The printed algorithm forgets runs that reach
S_preload or whose preferred node is busy; the text does not, and is followed.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..actions import Decision
from ..observation import Flags, Floats, Ints, Observation
from .page_sets import find_rows, move_actions, page_keys
from .parameters import parameter, period
from .performance import preferred_nodes


class Latencies(NamedTuple):
    """Mean latencies relative to the mean of all: by the accessing node (K,), by page (M,); NaN without
    accesses.
    """

    nodes: Floats
    pages: Floats


@dataclass(frozen=True)
class Lmma:
    """LMMA with the paper's thresholds."""

    delta_busy: float = parameter(1.3, "relative latency above which a node is busy")
    delta_lat: float = parameter(1.3, "relative latency above which a page is moved")
    s_preload: int = parameter(8, "following pages moved along at most", paper="S_preload", high=1 << 20)
    period_s: float = period(1.0)
    needs: ClassVar[frozenset[str]] = frozenset({"accesses"})
    balances: ClassVar[bool] = False
    trades_distance: ClassVar[bool] = False

    def decide(self, observation: Observation, state: Any) -> Decision:
        """The page migrations of Algorithm 3."""
        latency = relative_latencies(observation)
        hot = np.flatnonzero(latency.pages > self.delta_lat)
        if not len(hot) or np.isnan(latency.nodes).all():
            return Decision((), state)
        preferred = preferred_nodes(observation.page_accesses)
        busy: Flags = latency.nodes > self.delta_busy
        alternative = int(np.nanargmin(latency.nodes))
        goal = np.where(busy[preferred[hot]], alternative, preferred[hot])
        keys = page_keys(observation.pages.process, observation.pages.number)
        runs = self.run_lengths(keys, preferred, hot, goal)
        first = _not_covered(keys[hot], runs)
        lengths = runs[first]
        starts = np.repeat(keys[hot[first]] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        moved = starts + np.arange(int(lengths.sum()))
        goals = np.repeat(goal[first], lengths)
        return Decision(move_actions(observation, moved, goals, "latency above average"), state)

    def run_lengths(self, keys: Ints, preferred: Ints, hot: Ints, goal: Ints) -> Ints:
        """(H,) how many consecutive pages go with each hot one, itself included: 1 to S_preload + 1.

        keys: (M,) ascending; a run ends before a page that another node than the run's goal prefers.
        """
        lengths = np.ones(len(hot), dtype=np.int64)
        open_runs = np.ones(len(hot), dtype=bool)
        for ahead in range(1, self.s_preload + 1):
            rows = find_rows(keys, keys[hot] + ahead)
            liked = np.where(rows >= 0, preferred[rows], -1)
            open_runs &= (liked < 0) | (liked == goal)
            if not open_runs.any():
                break
            lengths += open_runs
        return lengths


def relative_latencies(observation: Observation) -> Latencies:
    """Mean latency of the accesses from each node and to each page over the mean of all (Eq. 8 to 10)."""
    touches = observation.touches
    waits = observation.latency_or_distance
    known = ~np.isnan(waits) & (touches.accesses > 0)
    weight, page, node = touches.accesses[known], touches.page[known], touches.node[known]
    products = weight * waits[known]
    total = weight.sum()
    mean = products.sum() / total if total > 0 else np.nan

    def relative(rows: Ints, count: int, to: float) -> Floats:
        weights = np.bincount(rows, weight, minlength=count)
        sums = np.bincount(rows, products, minlength=count)
        means: Floats = np.divide(sums, weights, out=np.full(count, np.nan), where=weights > 0) / to
        return means

    nodes, pages = observation.machine.nodes, observation.pages.count
    by_node = relative(node, nodes, mean)
    if np.isnan(touches.latency_ns).all():
        return Latencies(np.where(np.isnan(by_node), np.nan, 1.0), _by_distance(observation))
    return Latencies(by_node, relative(page, pages, mean))


def _by_distance(observation: Observation) -> Floats:
    """(M,) what accesses to each page cost over what they would from its preferred node.

    Distances, which stand in for latencies that nobody measured, do not tell who is busy: a node is as far
    from the others at any load. And the mean of all accesses says little of what one should cost: with most
    pages remote none would be above it, with all remote from one node that node would be busy.
    """
    far = observation.page_accesses @ observation.machine.latency_ns
    pages, here = np.arange(len(far)), observation.pages.node
    best = far[pages, preferred_nodes(observation.page_accesses)]
    known = (here >= 0) & (best > 0)
    relative: Floats = np.divide(far[pages, here], best, out=np.full(len(far), np.nan), where=known)
    return relative


def _not_covered(keys: Ints, lengths: Ints) -> Ints:
    """Rows of the hot pages, ascending by key, that no earlier run took along."""
    taken, covered = [], -1
    for row, (key, length) in enumerate(zip(keys.tolist(), lengths.tolist(), strict=True)):
        if key >= covered:
            taken.append(row)
            covered = key + length
    return np.array(taken, dtype=np.int64)
