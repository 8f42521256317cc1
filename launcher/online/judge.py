"""Did it help? What an interval cost, and whether one is worse than another beyond chance.

The cost of an access is its latency where that is sampled, else the unloaded latency between the node of the
thread and the node of the page; clearly more waiting for a cpu makes all of it longer. An interval in which
threads shared cpus, or reached far, costs more.

A program changes by itself, too: then its accesses cost more with the moves, and would without. So before
moves are undone, what the last interval's accesses cost is compared with what they would have cost without.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from numaplan.mapper import Flags, Floats, Ints, MoveThread, Observation, find_rows

from .actuator import ActionResult
from .samples import Interval

_LEAST_SAMPLES = 30
MORE_WAITING = 0.1  # of the time: less comes and goes where there are more threads than cpus
WORSE = 0.02  # less is not worth undoing anything
_PIECES, _MOST_PIECES = 8, 1000  # of an interval, and of all
_CERTAIN = 2.0  # standard errors
_LEAST_TIMED = 10  # samples from a node to another that tell the latency between them


@dataclass(frozen=True)
class Cost:
    """Mean cost of an access in ns, its standard error, samples, the share that was local (NaN: none), and
    the share of their time that threads waited for a cpu because of where they are.
    """

    mean: float
    error: float
    samples: int
    local_share: float
    waiting: float = 0.0

    def stretched(self) -> "Cost":
        """With the waiting for cpus, which makes every access longer."""
        stretch = 1.0 / max(1e-3, 1.0 - self.waiting)
        return replace(self, mean=self.mean * stretch, error=self.error * stretch)


def cost_of(interval: Interval, waiting_only: bool = False) -> Cost:
    """The cost of an interval's samples. waiting_only: a policy that trades distance for room."""
    samples, place = interval.samples, interval.page_nodes
    known = place >= 0
    node, page, count = samples.node[known], place[known], samples.weight[known]
    if waiting_only:
        return Cost(1.0 / max(1e-3, 1.0 - interval.waiting), 0.0, len(count), _share(node == page, count))
    waits = interval.observation.machine.latency_ns[node, page]
    latency = samples.latency[known]
    waits = np.where(np.isnan(latency), waits, latency)
    total = count.sum()
    if total <= 0:
        return Cost(np.nan, np.nan, 0, np.nan)
    mean = float((waits * count).sum() / total)
    error = _error(samples.time_s[known], waits * count, count, interval.observation.interval_s)
    return Cost(mean, error, len(count), _share(node == page, count), interval.avoidable)


def _error(time_s: Floats, waits: Floats, count: Floats, interval_s: float) -> float:
    """The standard error of the mean wait, from how the means of pieces of the interval differ.

    Samples of one moment are alike: many of them are no better than one. A single piece tells nothing.
    """
    piece = np.minimum((time_s - time_s.min()) / max(interval_s, 1e-3) * _PIECES, _MOST_PIECES).astype(
        np.int64
    )
    sums = np.bincount(piece, count)
    there = sums > 0
    means, sums = np.bincount(piece, waits)[there] / sums[there], sums[there]
    if len(means) < 2:
        return float("inf")
    weight = sums / sums.sum()
    return float(((weight * (means - (means * weight).sum()) ** 2).sum() / (len(means) - 1)) ** 0.5)


def _share(local: Flags, count: Floats) -> float:
    total = float(count.sum())
    return float(count[local].sum()) / total if total else float("nan")


def verdict(before: Cost, after: Cost) -> str:
    """`better`, `worse` or `open` (too few samples, or no clear difference)."""
    if min(before.samples, after.samples) < _LEAST_SAMPLES:
        return "open"
    if abs(after.waiting - before.waiting) > MORE_WAITING:
        before, after = before.stretched(), after.stretched()
    doubt = max(WORSE * before.mean, _CERTAIN * (before.error**2 + after.error**2) ** 0.5)
    if after.mean > before.mean + doubt:
        return "worse"
    return "better" if after.mean < before.mean - doubt else "open"


@dataclass
class PendingMoves:
    """Moves whose effect is not clear yet.

    before: what accesses cost then; waiting: for cpus, avoidably, then; tids: there then; nodes_before: node
    row by tid of moved threads; age: intervals since; worse: how many in a row that were worse.
    """

    before: Cost
    waiting: float
    tids: Ints
    done: list[ActionResult] = field(default_factory=list)
    nodes_before: dict[int, int] = field(default_factory=dict)
    age: int = 0
    worse: int = 0

    def add(self, done: list[ActionResult], observation: Observation) -> None:
        """Further moves, made upon this observation."""
        self.done += done
        nodes = dict(zip(observation.threads.tid.tolist(), observation.threads.node.tolist(), strict=True))
        for action in (one.action for one in done if one.moved):
            if isinstance(action, MoveThread) and action.tid in nodes:
                self.nodes_before.setdefault(action.tid, nodes[action.tid])

    def at_fault(self, interval: Interval) -> bool:
        """Whether the last interval would have been better without these moves."""
        crowded = interval.avoidable > self.waiting + MORE_WAITING
        if self.nodes_before and crowded:  # they may have been moved together
            return True
        known = interval.page_nodes >= 0
        samples, place = interval.samples.where(known), interval.page_nodes[known]
        node = samples.node.copy()
        for tid, node_before in self.nodes_before.items():
            node[samples.tid == tid] = node_before
        before = self._places_before(samples.pid, samples.page, place, interval.observation.machine.node_ids)
        latency = _latencies(interval, place, known)
        now = float((latency[samples.node, place] * samples.weight).sum())
        without = float((latency[node, before] * samples.weight).sum())
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
            rows = find_rows(node_ids, nodes[order[at]])  # they may have been on a node that is not ours
            ours &= rows >= 0
            result[ours] = rows[ours]
        return result


def _latencies(interval: Interval, place: Ints, known: np.ndarray) -> Floats:
    """(K, K) ns from node to node: as the samples tell where there are enough, else as the machine does."""
    machine = interval.observation.machine
    node, latency = interval.samples.node[known], interval.samples.latency[known]
    timed = ~np.isnan(latency)
    cells, size = (node * machine.nodes + place)[timed], machine.nodes**2
    count = np.bincount(cells, minlength=size)
    total = np.bincount(cells, latency[timed], minlength=size)
    mean = np.where(count >= _LEAST_TIMED, total / np.maximum(count, 1), machine.latency_ns.ravel())
    result: Floats = mean.reshape(machine.nodes, machine.nodes)
    return result
