"""CIMAR and NIMAR: move the worst performing threads where their score is best ([IMAR], 4.2 and 4.3).

Read where the paper leaves it open: q4 rewards a swap once, when the partner performs badly too (the thread
itself always does, or it would be no candidate); a thread, a free core and a free seat are used by one
migration of an interval; equal scores go to the worse thread, then the nearer node, then the lower number.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..actions import Decision
from ..observation import Floats, Ints, MachineView, Observation
from .migration import Facts, Migration, actions_of, compatible
from .parameters import parameter, period
from .performance import performance, preferred_nodes, relative_performance

Record = dict[tuple[int, int], float]  # (tid, node row) -> P when it ran there last


@dataclass(frozen=True)
class _Imar(ABC):
    """What both share: candidates, the score, the choice."""

    delta_perf: float = parameter(0.8, "relative performance up to which a thread is a candidate")
    m: int = parameter(5, "migrations per interval at most", low=1)
    q1: float = parameter(2.0, "points for a free core")
    q2: float = parameter(4.0, "points for equal distance to the preferred node")
    q3_better: float = parameter(4.0, "points where it performed better before")
    q3_unknown: float = parameter(2.0, "points where it was not before, or did the same")
    q3_worse: float = parameter(1.0, "points where it performed worse before")
    q4: float = parameter(3.0, "points for a swap with another bad performer")
    period_s: float = period(1.0)
    needs: ClassVar[frozenset[str]] = frozenset({"accesses"})
    balances: ClassVar[bool] = False
    trades_distance: ClassVar[bool] = False
    per_core: ClassVar[bool]

    def decide(self, observation: Observation, state: Record | None) -> Decision:
        """The best migrations; state: how each thread performed where it ran last."""
        facts = self.facts(observation, state or {})
        options = [option for thread in self.candidates(facts) for option in self.options(facts, int(thread))]
        order = sorted(range(len(options)), key=lambda row: -options[row].score)
        chosen = compatible(observation, [options[row] for row in order], self.m, self.per_core)
        actions = tuple(action for migration in chosen for action in actions_of(facts, migration))
        return Decision(actions, self._remember(facts, state or {}))

    def facts(self, observation: Observation, record: Record) -> Facts:
        """Performance and preferred nodes of one interval, and what the record says of earlier ones."""
        values = performance(observation)
        threads, nodes = observation.threads, observation.machine.nodes
        before = np.full((threads.count, nodes), np.nan)
        rows = {tid: row for row, tid in enumerate(threads.tid.tolist())}
        for (tid, node), value in record.items():
            if tid in rows and node < nodes:
                before[rows[tid], node] = value
        return Facts(
            observation,
            np.maximum(observation.machine.distances, 1.0),
            preferred_nodes(threads.accesses),
            values,
            relative_performance(values, threads.process, observation.processes.count),
            before,
        )

    def candidates(self, facts: Facts) -> Ints:
        """Rows of the m movable threads of least relative performance up to delta_perf, the worst first."""
        bad = np.flatnonzero((facts.relative <= self.delta_perf) & facts.observation.threads.movable)
        return bad[np.argsort(facts.relative[bad], kind="stable")][: self.m]

    def scores(self, facts: Facts, threads: Ints, node: Ints | int) -> Floats:
        """(n,) q2 + q3 of threads (rows) on a node; on the one they are on, what staying is worth."""
        here, preferred = facts.observation.threads.node[threads], facts.preferred[threads]
        nearness = facts.distances[here, preferred] / facts.distances[node, preferred]
        points: Floats = self.q2 * np.where(preferred >= 0, nearness, 1.0)
        now, before = facts.performance[threads], facts.before[threads, node]
        known = (here != node) & ~np.isnan(now) & ~np.isnan(before) & (before != now)
        record = np.where(before > now, self.q3_better, self.q3_worse)
        return points + np.where(known, record, self.q3_unknown)

    def score(self, facts: Facts, thread: int, node: int, *, free: bool = False, partner: int = -1) -> float:
        """Points for one thread on a node: q1 + q2 + q3 + q4."""
        points = float(self.scores(facts, np.array([thread]), node)[0])
        if free and node != int(facts.observation.threads.node[thread]):
            points += self.q1
        if partner >= 0 and facts.relative[partner] < self.delta_perf:
            points += self.q4
        return points

    @abstractmethod
    def options(self, facts: Facts, thread: int) -> list[Migration]:
        """Migrations of one candidate that score more than leaving things as they are, nearest nodes
        first.
        """

    def swaps(self, facts: Facts, thread: int, others: Ints, cpus: Ints | None) -> list[Migration]:
        """Changing places with each of `others` (rows, on one node), where that scores more than both
        staying.
        """
        if not len(others):
            return []
        nodes = facts.observation.threads.node
        here, there = int(nodes[thread]), int(nodes[others[0]])
        bonus = np.where(facts.relative[others] < self.delta_perf, self.q4, 0.0)
        going = self.score(facts, thread, there) + bonus + self.scores(facts, others, here)
        staying = self.score(facts, thread, here) + self.scores(facts, others, there)
        return [
            Migration(
                thread, there, -1 if cpus is None else int(cpus[row]), int(others[row]), float(going[row])
            )
            for row in np.flatnonzero(going > staying).tolist()
        ]

    def single(self, facts: Facts, thread: int, node: int, cpu: int) -> Migration | None:
        """Move to a free place, if that scores more than staying."""
        score = self.score(facts, thread, node, free=True)
        staying = self.score(facts, thread, int(facts.observation.threads.node[thread]))
        return Migration(thread, node, cpu, -1, score) if score > staying else None

    def _remember(self, facts: Facts, record: Record) -> Record:
        threads = facts.observation.threads
        alive = set(threads.tid.tolist())
        record = {key: value for key, value in record.items() if key[0] in alive}
        places = zip(threads.tid.tolist(), threads.node.tolist(), strict=True)
        record.update(
            (place, value)
            for place, value in zip(places, facts.performance.tolist(), strict=True)
            if value == value  # not NaN
        )
        return record


@dataclass(frozen=True)
class Nimar(_Imar):
    """NIMAR: to nodes; which core of it is left to the operating system."""

    per_core: ClassVar[bool] = False

    def options(self, facts: Facts, thread: int) -> list[Migration]:
        """To each other node: a free seat where it has one, else a swap with each thread that is there."""
        threads, machine = facts.observation.threads, facts.observation.machine
        hosted = np.bincount(threads.node[threads.running], minlength=machine.nodes)
        found: list[Migration | None] = []
        for node in _other_nodes(facts, thread):
            if hosted[node] < machine.seats[node]:
                found.append(self.single(facts, thread, node, -1))
            else:
                there = np.flatnonzero((threads.node == node) & threads.movable & threads.running)
                found += self.swaps(facts, thread, there, None)
        return [option for option in found if option is not None]


@dataclass(frozen=True)
class Cimar(_Imar):
    """CIMAR: to single cores, on which the thread then stays."""

    per_core: ClassVar[bool] = True

    def options(self, facts: Facts, thread: int) -> list[Migration]:
        """To each core of the other nodes: a free one, or a swap with each thread that is on it."""
        threads, machine = facts.observation.threads, facts.observation.machine
        running = threads.running
        hosted = np.bincount(threads.cpu[running & (threads.cpu >= 0)], minlength=len(machine.cpu_ids))
        found: list[Migration | None] = []
        for node in _other_nodes(facts, thread):
            on_node = (machine.cpu_node == node) & machine.open_cpus
            found += [
                self.single(facts, thread, node, cpu)
                for cpu in np.flatnonzero(on_node & (hosted == 0)).tolist()
            ]
            there = np.flatnonzero((threads.node == node) & threads.movable & running)
            found += self.swaps(facts, thread, there, threads.cpu[there])
        return [option for option in found if option is not None]


def _other_nodes(facts: Facts, thread: int) -> list[int]:
    """Rows of the nodes with cpus but the thread's own, nearest to its preferred node first."""
    machine: MachineView = facts.observation.machine
    here, preferred = int(facts.observation.threads.node[thread]), int(facts.preferred[thread])
    others = [node for node in machine.cpu_nodes.tolist() if node != here]
    return sorted(others, key=lambda node: facts.distances[node, preferred if preferred >= 0 else here])
