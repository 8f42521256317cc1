"""Distributed Intensity: DI-Plain, and DI-Migrate, whose memory follows ([DINO], 3.1 and 3.2).

Threads sorted by misses per thousand instructions are assigned to the domains from both ends of the list in
turn, so that intensive ones share a domain with quiet ones. Every change of the order moves threads; that
is their weakness.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..actions import Action, Decision, MoveThread
from ..observation import Floats, Ints, Observation
from .follow import follow, remote_pages
from .layout import alternating_layout, domain_slots
from .parameters import parameter, period


def miss_rates(observation: Observation) -> Floats:
    """(T,) last-level cache misses a thousand instructions; 0 for threads that did nothing."""
    threads = observation.threads
    rates: Floats = np.divide(
        1e3 * threads.llc_misses,
        threads.instructions,
        out=np.zeros(threads.count),
        where=threads.instructions > 0,
    )
    return rates


def placed_threads(observation: Observation, known: Iterable[int]) -> Ints:
    """Rows of the threads that get a place: movable, and running now or at an earlier interval (known: tids).

    A shell that waits for the programs it started would else take a core from one of them.
    """
    threads = observation.threads
    running = threads.running | np.isin(threads.tid, np.array(sorted(known), dtype=np.int64))
    return np.flatnonzero(threads.movable & running)


def thread_moves(
    observation: Observation, rows: Ints, cpus: Ints, reasons: list[str], bound: frozenset[int]
) -> tuple[Action, ...]:
    """Moves of the threads (rows) that are not on the wanted cpu (rows), or not bound to it yet.

    bound: tids that were bound before; a thread that may stay is bound too, or the kernel would move it.
    """
    threads, machine = observation.threads, observation.machine
    return tuple(
        MoveThread(
            tid=int(threads.tid[row]),
            node=int(machine.node_ids[machine.cpu_node[cpu]]),
            reason=reason,
            cpu=int(machine.cpu_ids[cpu]),
        )
        for row, cpu, reason in zip(rows.tolist(), cpus.tolist(), reasons, strict=True)
        if threads.cpu[row] != cpu or int(threads.tid[row]) not in bound
    )


@dataclass(frozen=True)
class DiPlain:
    """DI-Plain: threads only."""

    period_s: float = period(1.0)
    needs: ClassVar[frozenset[str]] = frozenset({"misses", "counters"})
    balances: ClassVar[bool] = False
    trades_distance: ClassVar[bool] = True

    def decide(self, observation: Observation, state: frozenset[int] | None) -> Decision:
        """Every movable thread to its place in the alternating layout; state: tids bound so far."""
        rows, cpus = self.layout(observation, placed_threads(observation, state or ()))
        rates = miss_rates(observation)[rows]
        reasons = [f"{rate:.1f} misses/1000" for rate in rates]
        actions = thread_moves(observation, rows, cpus, reasons, state or frozenset())
        bound = frozenset(observation.threads.tid[rows].tolist())
        return Decision(actions + self.memory(observation, rows, cpus), bound)

    def layout(self, observation: Observation, rows: Ints) -> tuple[Ints, Ints]:
        """These threads' rows, most intensive first, and the cpu row of each."""
        rates = miss_rates(observation)
        order = rows[np.argsort(-rates[rows], kind="stable")].tolist()
        placed = alternating_layout(order, domain_slots(observation.machine, len(order)))
        pairs = np.array(placed, dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def memory(self, observation: Observation, rows: Ints, cpus: Ints) -> tuple[Action, ...]:
        """Page migrations: none."""
        del observation, rows, cpus
        return ()


@dataclass(frozen=True)
class DiMigrate(DiPlain):
    """DI-Migrate: what its threads access remotely moves along, with K pages around it."""

    k: int = parameter(4096, "pages moved along around a sampled one", paper="K", high=1 << 22)
    needs: ClassVar[frozenset[str]] = frozenset({"misses", "counters", "accesses"})
    trades_distance: ClassVar[bool] = False

    def memory(self, observation: Observation, rows: Ints, cpus: Ints) -> tuple[Action, ...]:
        """Pages accessed from where the threads will be now."""
        return follow(observation, *remote_pages(moved(observation, rows, cpus)), self.k)


def moved(observation: Observation, rows: Ints, cpus: Ints) -> Observation:
    """The observation with threads (rows) on the nodes of these cpus (rows)."""
    nodes = observation.threads.node.copy()
    nodes[rows] = observation.machine.cpu_node[cpus]
    return replace(observation, threads=replace(observation.threads, node=nodes))
