"""Balancing between nodes: which thread of the busiest queue goes ([EXCL], 2.3 and 3).

These policies replace the kernel's balancing between nodes. While one node has so many more threads a cpu
than another that moving one evens them out, a thread is chosen from the longest queue of the one for the
other. From outside the kernel a queue is the threads that are on a cpu and want to run, lowest tid first.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..actions import Action, Decision, MoveThread
from ..observation import Floats, Ints, Observation
from .parameters import parameter, period

_RUNNABLE = 0.5  # wants to run for at least this share of the interval
_EVEN = 1e-9


class Choice(NamedTuple):
    """A thread row and why it was chosen."""

    thread: int
    reason: str


class Transfer(NamedTuple):
    """One thread of the queue (rows, in order) is to go from node row `source` to `target`."""

    observation: Observation
    queue: Ints
    source: int
    target: int

    @property
    def process(self) -> Ints:
        """(n,) process rows of the queue's threads."""
        return self.observation.threads.process[self.queue]

    @property
    def pages(self) -> Floats:
        """(n, K) pages of the queue's threads' processes by node."""
        return self.observation.processes.pages[self.process]


@dataclass(frozen=True)
class _Balancing(ABC):
    """The common half: when to move and between which nodes."""

    m: int = parameter(8, "threads moved per interval at most", low=1)
    period_s: float = period(0.25)
    balances: ClassVar[bool] = True
    trades_distance: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset()

    def decide(self, observation: Observation, state: Any) -> Decision:
        """Moves that even out the nodes, one thread at a time."""
        actions: list[Action] = []
        for _ in range(self.m):
            choice, target = self._one(observation)
            if choice is None:
                break
            machine, threads = observation.machine, observation.threads
            actions.append(
                MoveThread(int(threads.tid[choice.thread]), int(machine.node_ids[target]), choice.reason)
            )
            node, movable = threads.node.copy(), threads.movable.copy()
            node[choice.thread], movable[choice.thread] = target, False
            cpu = threads.cpu.copy()
            cpu[choice.thread] = -1
            moved = replace(threads, node=node, movable=movable, cpu=cpu)
            observation = replace(observation, threads=moved)
        return Decision(tuple(actions), state)

    def _one(self, observation: Observation) -> tuple[Choice | None, int]:
        pair = unbalanced_pair(observation)
        if pair is None:
            return None, -1
        source, target = pair
        for queue in queues(observation, source):
            choice = self.select(Transfer(observation, queue, source, target))
            if choice is not None:
                return choice, target
        return None, -1

    @abstractmethod
    def select(self, transfer: Transfer) -> Choice | None:
        """The thread that goes; None: none of these."""


def unbalanced_pair(observation: Observation) -> tuple[int, int] | None:
    """Rows of the node with most and with fewest runnable threads a cpu, if moving one thread helps."""
    machine, threads = observation.machine, observation.threads
    count = np.bincount(threads.node[threads.busy >= _RUNNABLE], minlength=machine.nodes)
    nodes = machine.cpu_nodes
    load = count[nodes] / machine.seats[nodes]
    source, target = int(nodes[np.argmax(load)]), int(nodes[np.argmin(load)])
    after = (count[target] + 1) / machine.seats[target]
    return (source, target) if after < load.max() - _EVEN and count[source] > machine.seats[source] else None


def queues(observation: Observation, node: int) -> list[Ints]:
    """Runnable movable threads (rows by tid) of each cpu of the node, the longest queue first."""
    threads = observation.threads
    waiting = (threads.node == node) & (threads.busy >= _RUNNABLE) & threads.movable
    rows = np.flatnonzero(waiting)
    rows = rows[np.argsort(threads.tid[rows], kind="stable")]
    by_cpu = [rows[threads.cpu[rows] == cpu] for cpu in np.unique(threads.cpu[rows])]
    return sorted(by_cpu, key=len, reverse=True)


def leader_nodes(observation: Observation) -> Ints:
    """(P,) the node row of each process's leader, -1 where it is gone."""
    where = np.full(observation.processes.count, -1, dtype=np.int64)
    leaders = np.flatnonzero(observation.threads.leader)
    where[observation.threads.process[leaders]] = observation.threads.node[leaders]
    return where


def exclusivity(observation: Observation) -> Floats:
    """(P,) the largest share of a process's threads that one node has (Eq. 7); NaN without threads."""
    nodes, count = observation.machine.nodes, observation.processes.count
    cells = observation.threads.process * nodes + observation.threads.node
    spread = np.bincount(cells, minlength=count * nodes).reshape(count, nodes)
    total = spread.sum(axis=1)
    shares: Floats = np.divide(spread.max(axis=1), total, out=np.full(count, np.nan), where=total > 0)
    return shares


@dataclass(frozen=True)
class FirstFit(_Balancing):
    """The first that may be moved: what the kernel does."""

    def select(self, transfer: Transfer) -> Choice | None:
        """The head of the queue."""
        return Choice(int(transfer.queue[0]), "first in the queue") if len(transfer.queue) else None


@dataclass(frozen=True)
class _Measured(_Balancing):
    """The one with the largest value of a measure, the first on a tie."""

    label: ClassVar[str]

    @abstractmethod
    def measure(self, transfer: Transfer) -> Floats:
        """(n,) a value for each thread of the queue; larger is better."""

    def select(self, transfer: Transfer) -> Choice | None:
        """The best by the measure."""
        if not len(transfer.queue):
            return None
        values = self.measure(transfer)
        best = int(np.argmax(values))
        return Choice(int(transfer.queue[best]), f"{self.label} {abs(float(values[best])):.4g}")


@dataclass(frozen=True)
class TotalMin(_Measured):
    """TM: the process of least memory."""

    label: ClassVar[str] = "total pages"
    needs: ClassVar[frozenset[str]] = frozenset({"resident"})

    def measure(self, transfer: Transfer) -> Floats:
        """Minus the total of pages."""
        total: Floats = transfer.pages.sum(axis=1)
        return -total


@dataclass(frozen=True)
class MostBenefit(_Measured):
    """MB: most pages on the destination less those on the source."""

    label: ClassVar[str] = "benefit in pages"
    needs: ClassVar[frozenset[str]] = frozenset({"resident"})

    def measure(self, transfer: Transfer) -> Floats:
        """RSS(destination) - RSS(source)."""
        return transfer.pages[:, transfer.target] - transfer.pages[:, transfer.source]


@dataclass(frozen=True)
class BestCost(MostBenefit):
    """BCE: that benefit relative to the pages left behind."""

    label: ClassVar[str] = "benefit per page left"

    def measure(self, transfer: Transfer) -> Floats:
        """(RSS(destination) - RSS(source)) / RSS(source); infinite where nothing is left behind, 0 without
        pages.
        """
        gain, cost = super().measure(transfer), transfer.pages[:, transfer.source]
        value: Floats = np.divide(gain, cost, out=np.where(gain > 0, np.inf, 0.0), where=cost > 0)
        return value


@dataclass(frozen=True)
class ExclBase(_Measured):
    """Excl_base: the least exclusive thread group."""

    label: ClassVar[str] = "exclusivity"

    def measure(self, transfer: Transfer) -> Floats:
        """Minus the exclusivity."""
        return -exclusivity(transfer.observation)[transfer.process]


class _NearLeader(_Measured):
    """The enhancements ([EXCL], 3.2): threads stay near their group's leader, leaders stay where they
    are.
    """

    def select(self, transfer: Transfer) -> Choice | None:
        """The first whose leader is on the destination; else the best of one a group with its leader
        elsewhere.
        """
        threads = transfer.observation.threads
        members = transfer.queue[~threads.leader[transfer.queue]]
        leaders = leader_nodes(transfer.observation)[threads.process[members]]
        at_home = members[leaders == transfer.target]
        if len(at_home):
            return Choice(int(at_home[0]), "joins its leader")
        evaluated = members[leaders != transfer.source]
        _, first = np.unique(threads.process[evaluated], return_index=True)
        return super().select(transfer._replace(queue=evaluated[np.sort(first)]))


@dataclass(frozen=True)
class MostBenefitPlus(_NearLeader, MostBenefit):
    """MB+: MB with the enhancements."""


@dataclass(frozen=True)
class Excl(_NearLeader, ExclBase):
    """Excl: Excl_base with the enhancements."""
