"""Moves whose effect is not clear yet, and whether they are at fault when accesses cost more since.

A program changes by itself, too: then its accesses cost more with the moves, and would without. So before
moves are undone, what the last interval's accesses cost is compared with what they would have cost without.
"""

from dataclasses import dataclass, field

import numpy as np

from numaplan.launcher.online.acting import Done
from numaplan.launcher.online.actions import MoveThread
from numaplan.launcher.online.judge import MORE_WAITING, WORSE, Cost
from numaplan.launcher.online.observation import Floats, Ints, Observation
from numaplan.launcher.online.observing import Looked

_FEWEST = 10  # samples from a node to another that tell the latency between them


@dataclass
class Trial:
    """What was moved, what accesses cost before (waiting: for cpus, avoidably; tids: there then), and
    where threads were.

    age: looks since; worse: how many in a row that were worse.
    """

    before: Cost
    waiting: float
    tids: Ints
    done: list[Done] = field(default_factory=list)
    homes: dict[int, int] = field(default_factory=dict)  # tid -> node row
    age: int = 0
    worse: int = 0

    def add(self, done: list[Done], seen: Observation) -> None:
        """Further moves, made upon this observation."""
        self.done += done
        nodes = dict(zip(seen.threads.tid.tolist(), seen.threads.node.tolist(), strict=True))
        for action in (one.action for one in done if one.moved):
            if isinstance(action, MoveThread) and action.tid in nodes:
                self.homes.setdefault(action.tid, nodes[action.tid])

    def at_fault(self, looked: Looked) -> bool:
        """Whether the last interval would have been better without these moves."""
        if self.homes and looked.avoidable > self.waiting + MORE_WAITING:  # they may have been moved together
            return True
        known = looked.fresh_place >= 0
        fresh, place = looked.fresh.where(known), looked.fresh_place[known]
        node = fresh.node.copy()
        for tid, home in self.homes.items():
            node[fresh.tid == tid] = home
        before = self._places_before(fresh.pid, fresh.page, place, looked.observation.machine.node_ids)
        latency = _latencies(looked, place, known)
        now = float((latency[fresh.node, place] * fresh.weight).sum())
        without = float((latency[node, before] * fresh.weight).sum())
        return without < now * (1.0 - WORSE)

    def _places_before(self, pid: Ints, page: Ints, place: Ints, node_ids: Ints) -> Ints:
        """(n,) node rows of the samples' pages, were nothing moved."""
        result = place.copy()
        for one in reversed(self.done):
            if one.pages_before is None or not len(one.pages_before[1]):
                continue
            owner, pages, nodes = one.pages_before
            order = np.argsort(pages)
            at = np.minimum(np.searchsorted(pages, page, sorter=order), len(pages) - 1)
            ours = (pages[order[at]] == page) & (pid == owner)
            result[ours] = np.searchsorted(node_ids, nodes[order[at]][ours])
        return result


def _latencies(looked: Looked, place: Ints, known: np.ndarray) -> Floats:
    """(K, K) ns from node to node: as the samples tell where there are enough, else as the machine does."""
    machine = looked.observation.machine
    node, latency = looked.fresh.node[known], looked.fresh.latency[known]
    timed = ~np.isnan(latency)
    cells, size = (node * machine.nodes + place)[timed], machine.nodes**2
    count = np.bincount(cells, minlength=size)
    total = np.bincount(cells, latency[timed], minlength=size)
    mean = np.where(count >= _FEWEST, total / np.maximum(count, 1), machine.latency_ns.ravel())
    result: Floats = mean.reshape(machine.nodes, machine.nodes)
    return result
