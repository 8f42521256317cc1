"""What placements would cost, by the formula of `machine/cost.py`: memory and its queues, in a second.

Of the formula's parts a running program shows the accesses that missed. Who takes whose lines is not seen,
and waiting for cpus is the kernel's affair, as threads are bound to nodes. Latencies, where they are
measured, say how busy memories and links are: queues are as many times as long as the formula has them, so
that what is waited now is what is seen. As nobody knows the bytes of a miss (prefetches, what is written
back), this is done twice: with the machine's bandwidths, and with such that the busiest memory or link is
nearly full now.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from numaplan.machine import LINE, OVERLAP, memory_waits, queue_waits

from ...observation import Flags, Floats, Ints, Observation, sums_by_cell
from .knowledge import Sharing

_ROUNDS = 8
_SECOND = 1e9  # ns
_LITTLE = 1e-3
_SLOWED = 1.01  # times a latency: queues that matter
_BUSY = 0.8  # of its bandwidth: what is nearly full


class Queueing(NamedTuple):
    """bandwidth: (K, K) MB/s; of_memory, of_link: times what accesses wait there by the formula."""

    bandwidth: Floats
    of_memory: float = 1.0
    of_link: float = 1.0

    def waits(self, memory: Floats, node: Ints, path: float = _SECOND) -> Floats:
        """(K, K) ns that an access from the row's node to the column's memory waits in queues.

        memory: (T, K) accesses of threads by the page's node; node: (T,) where they are; path: ns that they
        are made in.
        """
        at_memory, on_link = _parts(queue_waits(memory, node, self.bandwidth, path))
        answer: Floats = self.of_memory * at_memory + self.of_link * on_link
        return answer


@dataclass(frozen=True)
class Outlook:
    """latency: (K, K) ns without load; queueing, tight: as is likely, and nearly full; sharing: who uses
    what; node: (T,) where threads are; has_memory: (K,) whether pages can be put there."""

    latency: Floats
    queueing: Queueing
    tight: Queueing
    sharing: Sharing
    node: Ints
    has_memory: Flags

    def waiting(self, thread_node: Ints, page_node: Ints) -> tuple[float, float]:
        """Thread-seconds of waiting a second with everything where it is said to be.

        Twice: as expected, and if the busiest memory or link is nearly full now.
        """
        memory = self._memory(page_node)
        stalls = float(memory_waits(memory, thread_node, self.latency).sum())
        flow = _by_node(thread_node, memory)
        likely, tight = (
            stalls + float((flow * how.waits(memory, thread_node)).sum())
            for how in (self.queueing, self.tight)
        )
        return likely / _SECOND, tight / _SECOND

    def least_waiting(self) -> float:
        """Thread-seconds of waiting a second if all memory were as near its users as there is any, and no
        queue anywhere.
        """
        memory = self._memory(self.sharing.node).sum(axis=1)
        nearest = self.latency[:, self.has_memory].min(axis=1)
        return float(memory @ nearest[self.node]) / OVERLAP / _SECOND

    def left_of_savings(self, page_node: Ints) -> float:
        """What is left of a small saving once threads that wait less ask for more: 1 without load.

        A thread that does nothing but wait has a rate of 1 / wait, and waits grow with rates: of a saving at
        the same load 1 / (1 + elasticity of the wait) is left. Mean over accesses.
        """
        memory = self._memory(page_node)
        flow = _by_node(self.node, memory)
        at, more = (self.queueing.waits(memory, self.node, _SECOND / rate) for rate in (1.0, 1.0 + _LITTLE))
        left = flow / (1.0 + (more - at) / (_LITTLE * (self.latency / OVERLAP + at)))
        return float(left.sum() / flow.sum()) if flow.any() else 1.0

    def page_goals(self, thread_node: Ints, page_node: Ints, price: Floats) -> tuple[Ints, Floats]:
        """(M,) the node where each page's users wait least, and what they save there, ns a second.

        A page stays where that saves no more than its price, (M,) ns a second. Where memories or links are
        busy, a part of the pages chooses at a time, or all would flee to the same idle node.
        """
        used = self.sharing.by_node(thread_node, len(self.latency))
        known, goal = page_node >= 0, page_node.copy()
        each = self._each(thread_node, page_node)
        rounds = _ROUNDS if (each * OVERLAP > _SLOWED * self.latency).any() else 1
        for step in range(rounds):
            turn = np.flatnonzero(known[step::rounds]) * rounds + step
            here, cost = goal[turn], used[turn] @ each
            best, row = np.argmin(np.where(self.has_memory, cost, np.inf), axis=1), np.arange(len(turn))
            goal[turn] = np.where(cost[row, here] - cost[row, best] > price[turn], best, here)
            if rounds > 1:
                each = self._each(thread_node, goal)
        cost, rows = used @ each, np.arange(len(goal))
        return goal, np.where(known, cost[rows, page_node] - cost[rows, goal], 0.0)

    def distance_costs(self) -> Floats:
        """(T, K) ns a second each thread would wait on each node, memory being where it is."""
        costs: Floats = self._memory(self.sharing.node) @ self._each(self.node, self.sharing.node).T
        return costs

    def _each(self, thread_node: Ints, page_node: Ints) -> Floats:
        """(K, K) ns that an access from the row's node to the column's memory waits."""
        each: Floats = self.latency / OVERLAP + self.queueing.waits(self._memory(page_node), thread_node)
        return each

    def _memory(self, page_node: Ints) -> Floats:
        """(T, K) accesses a second by the node of the page, where that is known."""
        return self.sharing.by_memory(len(self.node), len(self.latency), page_node)


def _parts(waits: Floats) -> tuple[Floats, Floats]:
    """(K, K) each, by the access's node and the memory: waits at the memory, and on the link to it."""
    at_memory = np.diag(waits)
    return np.broadcast_to(at_memory, waits.shape), waits - np.diag(at_memory)


def _by_node(node: Ints, memory: Floats) -> Floats:
    """(K, K) the rows of memory, (T, K), added up by the threads' nodes."""
    flow: Floats = np.equal.outer(np.arange(memory.shape[1]), node).astype(np.float64) @ memory
    return flow


def fit_outlook(observation: Observation, sharing: Sharing) -> Outlook:
    """The outlook of one observation: without measured latencies, queues are as the formula has them."""
    touches, machine = observation.touches, observation.machine
    place = observation.pages.node[touches.page]
    good = (place >= 0) & ~np.isnan(touches.latency_ns)
    likely = tight = Queueing(machine.bandwidth_mb_s)
    if good.any():
        thread, node, place = touches.thread[good], touches.node[good], place[good]
        weight, shape = touches.accesses[good] / observation.interval_s, (machine.nodes, machine.nodes)
        over = touches.latency_ns[good] - machine.latency_ns[node, place]
        excess = sums_by_cell(node, place, weight * over, shape)
        # As rows the threads, once for each node they were on: the number of a memory's users counts.
        rows, row = np.unique(thread * machine.nodes + node, return_inverse=True)
        memory, node = sums_by_cell(row, place, weight, (len(rows), machine.nodes)), rows % machine.nodes
        full = _fullest(_by_node(node, memory), machine.bandwidth_mb_s)
        likely = _fitted(machine.bandwidth_mb_s, memory, node, excess)
        tight = _fitted(machine.bandwidth_mb_s * min(max(full / _BUSY, 1e-12), 1.0), memory, node, excess)
    return Outlook(machine.latency_ns, likely, tight, sharing, observation.threads.node, machine.has_memory)


def _fullest(flow: Floats, bandwidth: Floats) -> float:
    """The most that a memory or link is used of its bandwidth. flow: (K, K) accesses a second."""
    uses = np.where(np.eye(len(flow), dtype=bool), flow.sum(axis=0), flow)
    return float((uses * LINE * 1e-6 / bandwidth).max())


def _fitted(bandwidth: Floats, memory: Floats, node: Ints, excess: Floats) -> Queueing:
    """How long queues are by least squares over pairs of nodes. excess: (K, K) ns a second waited in them."""
    flow = _by_node(node, memory)
    used, much = flow > 0, np.sqrt(np.where(flow > 0, flow, 1.0))
    one, other = ((part * much)[used] for part in _parts(queue_waits(memory, node, bandwidth, _SECOND)))
    target = (excess / much)[used] / OVERLAP
    x, y = np.linalg.lstsq(np.stack([one, other], axis=1), target, rcond=None)[0].tolist()
    if min(x, y) < 0:  # one of the two alone
        x, y = (max(float(part @ target) / max(float(part @ part), 1e-300), 0.0) for part in (one, other))
        off = [float(np.linalg.norm(times * part - target)) for times, part in ((x, one), (y, other))]
        x, y = (x, 0.0) if off[0] <= off[1] else (0.0, y)
    return Queueing(bandwidth, x, y)
