"""Improve a placement by exchanges of two threads, under what the native solver does not know.

That is: phases of the run that matter more or less, and threads drawn to memory that stays where it is.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .cost import one_hot, thread_traffic
from .problem import Floats, Nodes, Problem

Flags = NDArray[np.bool_]

# Entries looked at in all: they bound the time, and not the clock, so that the answer is the same anywhere.
WORK = 3e8
PATIENCE = 30  # rounds without a better placement before giving up
KEPT = 1.05  # times the least unbalance found that a cheaper placement may have
NEVER = np.inf  # no limit to unbalance: it is what is to be made least


@dataclass(frozen=True)
class Goal:
    """What is asked beside the problem's own communication.

    loads: (P, N) and shares: (K,) of a node's fair part: each row is balanced for itself; weights: (P,) how
    much unbalance of each row matters; pull: (N, K) cost of each thread on each node, in the unit of the
    communication; fixed: (N,) threads that stay where they are; most: what the communication alone may cost.
    """

    problem: Problem
    loads: Floats
    weights: Floats
    pull: Floats
    fixed: Flags
    most: float = np.inf

    @cached_property
    def targets(self) -> Floats:
        """(P, K) what each node should carry of each row."""
        total = self.problem.targets.sum()
        shares = self.problem.targets / total if total > 0 else self.problem.sizes / self.problem.threads
        answer: Floats = self.loads.sum(axis=1)[:, None] * shares
        return answer

    @cached_property
    def allowed(self) -> Floats:
        """(P, K) how far off a load may be, weighted as `scale` is."""
        answer: Floats = self.problem.tolerance * self.weights[:, None] * (self.targets > 0)
        return answer

    @cached_property
    def scale(self) -> Floats:
        """(P, K) what a unit of load off its target costs, relative to the target."""
        none = np.zeros_like(self.targets)
        return np.divide(self.weights[:, None], self.targets, out=none, where=self.targets > 0)


class Exchange:
    """A placement with the sums that make the value of every exchange known at once.

    What gives (N, N) takes whole matrices only; the rest takes large sparse ones as well.
    """

    def __init__(self, goal: Goal, places: Nodes) -> None:
        problem = goal.problem
        self.goal, self.places = goal, places.copy()
        self.unit = float(problem.matrix.max()) or 1.0
        self._comm, self._pull = problem.comm / self.unit, goal.pull / self.unit
        self._sparse = None if problem.sparse is None else problem.sparse.scaled(1 / self.unit)
        self._spread = thread_traffic(self._sparse or self._comm, places, problem.nodes)
        self._sums = goal.loads @ one_hot(places, problem.nodes)  # (P, K)

    def communication(self) -> float:
        """Communication by its price, in units of the largest entry of the matrix."""
        priced = self._spread @ self.goal.problem.costs
        return float(priced[np.arange(len(self.places)), self.places].sum() / 2)

    def cost(self) -> float:
        """Communication and pull."""
        return self.communication() + float(self._pull[np.arange(len(self.places)), self.places].sum())

    def unbalance(self) -> float:
        """How far loads are off their targets beyond the tolerance, summed over rows and nodes."""
        return float(self._excess(self._sums).sum())

    def _excess(
        self, sums: Floats, row: int | slice = slice(None), nodes: Nodes | slice = slice(None)
    ) -> Floats:
        """What sums of some rows and nodes, equally shaped with them, are off beyond what is allowed."""
        goal = self.goal
        off = np.abs(sums - goal.targets[row][..., nodes]) * goal.scale[row][..., nodes]
        answer: Floats = np.maximum(off - goal.allowed[row][..., nodes] - 1e-12, 0.0)
        return answer

    def communication_changes(self) -> Floats:
        """(N, N) change in communication cost by exchanging two threads."""
        problem, at = self.goal.problem, self.places
        each = self._spread @ problem.costs  # (N, K) cost of a thread on each node
        diagonal = np.diag(problem.costs)[at]
        both = diagonal[:, None] + diagonal[None, :] - 2 * problem.costs[np.ix_(at, at)]
        changes: Floats = self._moves(each) - self._comm * both
        return changes

    def exchange_changes(self, thread: int, others: Nodes) -> Floats:
        """(M,) change in communication cost by exchanging a thread with each of M others, all on one node."""
        costs, here, there = self.goal.problem.costs, self.places[thread], self.places[others[0]]
        each = self._spread @ costs
        both = costs[here, here] + costs[there, there] - 2 * costs[here, there]
        moves = each[thread, there] + each[others, here] - each[thread, here] - each[others, there]
        changes: Floats = moves - self._row(thread)[others] * both
        return changes

    def _row(self, thread: int) -> Floats:
        row: Floats = self._comm[thread] if self._sparse is None else self._sparse.row(thread)
        return row

    def pull_changes(self) -> Floats:
        """(N, N) change in pull by exchanging two threads."""
        return self._moves(self._pull)

    def _moves(self, each: Floats) -> Floats:
        toward = each[:, self.places]  # thread i on the node of thread j
        own = np.diag(toward)
        answer: Floats = toward + toward.T - own[:, None] - own[None, :]
        return answer

    def unbalance_changes(self) -> Floats:
        """(N, N) change in unbalance by exchanging two threads."""
        at = self.places
        changes = np.zeros((len(at), len(at)))
        nodes = np.broadcast_to(at[:, None], changes.shape)
        for row, loads in enumerate(self.goal.loads):
            left = self._sums[row][at][:, None] + loads[None, :] - loads[:, None]  # node of i, with j for i
            half = self._excess(left, row, nodes) - self._excess(self._sums[row], row)[at][:, None]
            changes += half + half.T
        return changes

    def forbidden(self) -> Flags:
        """(N, N) exchanges that change nothing or touch a pinned thread."""
        fixed, at = self.goal.fixed, self.places
        barred: Flags = (at[:, None] == at[None, :]) | fixed[:, None] | fixed[None, :]
        return barred

    def exchange(self, first: int, second: int) -> None:
        """Exchange two threads."""
        a, b = self.places[first], self.places[second]
        moved = self._row(first) - self._row(second)
        self._spread[:, a] -= moved
        self._spread[:, b] += moved
        load = self.goal.loads[:, second] - self.goal.loads[:, first]
        self._sums[:, a] += load
        self._sums[:, b] -= load
        self.places[first], self.places[second] = b, a


def refine(goal: Goal, places: Nodes) -> Nodes:
    """The best placement found from `places` on, with its pinned threads where they are and equal sizes.

    First as balanced as can be, then as cheap as can be without giving that up; never worse than `places` in
    the former, nor in the latter at equal balance.
    """
    if goal.fixed.sum() > len(places) - 2 or goal.problem.nodes < 2:
        return places
    balanced = _search(Exchange(goal, places), goal, NEVER) if goal.loads.size else places
    start = Exchange(goal, places)
    best = Exchange(goal, balanced)
    limit = best.unbalance() * KEPT + 1e-12
    if start.unbalance() <= limit and start.cost() <= best.cost():
        balanced = places
    return _search(Exchange(goal, balanced), goal, limit)


def _search(state: Exchange, goal: Goal, limit: float) -> Nodes:
    """Tabu search; limit: unbalance that no placement may exceed; NEVER: make it least."""
    count = len(state.places)
    for_balance = limit == NEVER
    rounds = int(max(4, min(40 * count, WORK / (count * count * (1 + len(goal.loads))))))
    best, best_value = state.places.copy(), _value(state, for_balance)
    tabu = np.zeros(count, dtype=np.int64)
    stale = 0
    for turn in range(rounds):
        if (for_balance and best_value[0] <= 0) or stale > PATIENCE:
            break
        barred = state.forbidden()
        changes = state.communication_changes()
        if np.isfinite(goal.most):
            barred |= state.communication() + changes > goal.most / state.unit
        if goal.pull.any():
            changes += state.pull_changes()
        if goal.loads.size:
            off = state.unbalance_changes()
            if for_balance:
                # Cost decides between equals only: it is smaller than any difference that matters.
                changes = off + 1e-9 * changes / (1.0 + np.abs(changes).max())
            else:
                barred |= state.unbalance() + off > limit
        waiting = (tabu > turn)[:, None] | (tabu > turn)[None, :]
        now = _value(state, for_balance)[0]
        barred |= waiting & (now + changes >= best_value[0] - 1e-12 * abs(best_value[0]))
        changes[barred] = np.inf
        pick = int(changes.argmin())
        if not np.isfinite(changes.flat[pick]):
            break
        first, second = divmod(pick, count)
        state.exchange(first, second)
        tabu[[first, second]] = turn + 2 + (turn * 7 + first) % max(2, count // 4)
        value = _value(state, for_balance)
        stale = 0 if _better(value, best_value) else stale + 1
        if _better(value, best_value):
            best, best_value = state.places.copy(), value
    return best


def _value(state: Exchange, for_balance: bool) -> tuple[float, float]:
    return (state.unbalance(), state.cost()) if for_balance else (state.cost(), 0.0)


def _better(value: tuple[float, float], than: tuple[float, float]) -> bool:
    if value[0] < than[0] - 1e-12 * abs(than[0]):
        return True
    return value[0] <= than[0] and value[1] < than[1] - 1e-12 * abs(than[1])
