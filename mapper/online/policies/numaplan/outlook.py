"""What placements would cost: waiting for memory, with controllers that get slower the more they serve.

An access from node n to memory of k waits latency[n, k] x (1 + slowing x load_k^2), load_k in accesses a
second. `slowing` is fitted to the latencies seen now; unknown, it is 0 and only distance counts.
"""

from dataclasses import dataclass

import numpy as np

from ...observation import Floats, Ints, Observation, sums_by_cell
from .knowledge import Sharing

_ROUNDS = 8


@dataclass(frozen=True)
class Outlook:
    """latency: (K, K) ns without load; slowing: of a controller, per (access a second) squared; worst: to the
    fourth power; sharing: who uses what."""

    latency: Floats
    slowing: float
    worst: float
    sharing: Sharing

    def waiting(self, thread_node: Ints, page_node: Ints) -> tuple[float, float]:
        """Thread-seconds of waiting a second, before any overlap, with everything where it is said to be.

        Twice: as expected, and if controllers slow down with the fourth power of their load, as they do when
        nearly full.
        """
        place = page_node[self.sharing.page]
        known = place >= 0
        source, weight = thread_node[self.sharing.thread[known]], self.sharing.weight[known]
        flow = sums_by_cell(source, place[known], weight, self.latency.shape)
        load, bare = flow.sum(axis=0), (flow * self.latency).sum(axis=0) * 1e-9
        likely, worst = bare @ self.factors(load), bare @ (1.0 + self.worst * load**4)
        return float(likely), float(worst)

    def factors(self, load: Floats) -> Floats:
        """(K,) how much slower each controller is at these loads."""
        factors: Floats = 1.0 + self.slowing * load**2
        return factors

    def left_of_savings(self, page_node: Ints) -> float:
        """What is left of a small saving once threads that wait less ask for more: from 1 (no load) to 1/3.

        A thread that does nothing but wait has a rate of 1 / latency, and latency grows with the square of
        rates: of a saving at the same load 1 / (1 + elasticity of latency) is left. Mean over accesses.
        """
        known = page_node[self.sharing.page] >= 0
        place = page_node[self.sharing.page[known]]
        load = _sums(place, self.sharing.weight[known], len(self.latency))
        factors = self.factors(load)
        left = load / (1.0 + 2.0 * (factors - 1.0) / factors)
        return float(left.sum() / load.sum()) if load.any() else 1.0

    def page_goals(self, thread_node: Ints, page_node: Ints, price: Floats) -> tuple[Ints, Floats]:
        """(M,) the node where each page's users wait least, and what they save there, ns a second.

        A page stays where that saves no more than its price, (M,) ns a second. Where controllers
        slow down, a part of the pages chooses at a time, or all would flee to the same idle node.
        """
        nodes = len(self.latency)
        used = self.sharing.by_node(thread_node, nodes)
        weight, far = used.sum(axis=1), used @ self.latency
        known = page_node >= 0
        goal = page_node.copy()
        load = _sums(goal[known], weight[known], nodes)
        rounds = _ROUNDS if self.slowing > 0 else 1
        for step in range(rounds):
            turn = np.flatnonzero(known[step::rounds]) * rounds + step
            here, cost = goal[turn], far[turn] * self.factors(load)
            best = np.argmin(cost, axis=1)
            each = np.arange(len(turn))
            best = np.where(cost[each, here] - cost[each, best] > price[turn], best, here)
            load += _sums(best, weight[turn], nodes) - _sums(here, weight[turn], nodes)
            goal[turn] = best
        rows, factors = np.arange(len(goal)), self.factors(load)
        saved = far[rows, page_node] * factors[page_node] - far[rows, goal] * factors[goal]
        return goal, np.where(known, saved, 0.0)

    def distance_costs(self, threads: int) -> Floats:
        """(T, K) ns a second each thread would wait on each node, memory being where it is."""
        nodes = len(self.latency)
        memory = self.sharing.by_memory(threads, nodes)
        costs: Floats = (memory * self.factors(memory.sum(axis=0))) @ self.latency.T
        return costs


def _sums(rows: Ints, weight: Floats, count: int) -> Floats:
    """(count,) sums of the weights by row."""
    return np.bincount(rows, weight, minlength=count).astype(np.float64, copy=False)


def fit_outlook(observation: Observation, sharing: Sharing) -> Outlook:
    """The outlook of one observation, its slowing fitted by least squares over the controllers."""
    touches, machine = observation.touches, observation.machine
    place = observation.pages.node[touches.page]
    good = (place >= 0) & ~np.isnan(touches.latency_ns)
    if not good.any():
        return Outlook(machine.latency_ns, 0.0, 0.0, sharing)
    node, place = touches.node[good], place[good]
    weight = touches.accesses[good] / observation.interval_s
    bare = weight * machine.latency_ns[node, place]
    load = np.bincount(place, weight, minlength=machine.nodes)
    waited = np.bincount(place, weight * touches.latency_ns[good], minlength=machine.nodes)
    unloaded = np.bincount(place, bare, minlength=machine.nodes)
    excess = np.divide(waited, unloaded, out=np.ones(machine.nodes), where=unloaded > 0) - 1.0
    slowing, worst = (
        max(float((excess * steep * load).sum() / max(float((steep**2 * load).sum()), 1e-300)), 0.0)
        for steep in (load**2, load**4)
    )
    return Outlook(machine.latency_ns, slowing, worst, sharing)
