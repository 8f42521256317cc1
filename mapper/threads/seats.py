"""After the nodes: which cpu of its node each thread gets.

A node is divided as the machine divides it, level by level: dies, clusters, shared caches, cores, hwthreads.
At each level the threads that share most stay together. Every thread has a cpu of its own while there are
enough, and a core of its own while there are enough cores; where threads must share one, their loads decide
first who shares with whom.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from numaplan.machine import Machine

from .methods.best import best
from .problem import TOLERANCE, Floats, Nodes, Problem, node_sizes
from .sparse import SparseMatrix

# How unevenly cores may be loaded before threads that share are set apart: hwthreads still run at once.
CORE_TOLERANCE = 0.25


@dataclass(frozen=True)
class _Unit:
    """A part of a node: its smaller parts, or for a core none; its cpus; how many cores it holds."""

    parts: "tuple[_Unit, ...]"
    cpus: tuple[int, ...]
    cores: int


def assign_cpus(
    comm: Floats | SparseMatrix,
    machine: Machine,
    nodes: Sequence[int],
    pinned: Mapping[int, int] | None = None,
    loads: Floats | None = None,
) -> list[tuple[int, ...]]:
    """The cpus of each thread: comm (N, N) symmetric, nodes (N,) ids, loads (N,). One cpu a thread.

    pinned: cpu by number of the thread; the other threads get the cpus of their node that are left, or all
    of them when none is left. Without loads all threads count as equally busy.
    """
    kept = pinned or {}
    cpus: list[tuple[int, ...]] = [()] * len(nodes)
    for thread, cpu in kept.items():
        cpus[thread] = (cpu,)
    places = np.asarray(nodes)
    busy = np.ones(len(nodes)) if loads is None else loads
    taken = set(kept.values())
    for node in machine.cpu_nodes:
        threads = np.array([t for t in np.flatnonzero(places == node.id).tolist() if t not in kept], np.int64)
        left = [cpu for cpu in node.cpus if cpu not in taken] or node.cpus
        if len(threads):
            for thread, cpu in _seat(comm, busy, threads, _unit_of(machine, node.id, left)).items():
                cpus[thread] = (cpu,)
    return cpus


def _unit_of(machine: Machine, node: int, cpus: Sequence[int]) -> _Unit:
    """The node as a tree; every cpu is a core of its own where the machine does not say."""
    usable = set(cpus)
    cores: list[tuple[tuple[int, ...], _Unit]] = []
    for core in machine.cores:
        own = tuple(cpu for cpu in core.cpus if cpu in usable)
        if core.node == node and own:
            path = core.groups or (() if core.l3 is None else (core.l3,))
            cores.append((path, _Unit((), own, 1)))
            usable -= set(own)
    cores += [((), _Unit((), (cpu,), 1)) for cpu in sorted(usable)]
    return _tree(cores, 0)


def _tree(cores: "list[tuple[tuple[int, ...], _Unit]]", depth: int) -> _Unit:
    """The unit of some cores with their paths, whose first `depth` steps they have in common."""
    inner: dict[int, list[tuple[tuple[int, ...], _Unit]]] = {}
    parts = [unit for path, unit in cores if len(path) <= depth]
    for path, unit in cores:
        if len(path) > depth:
            inner.setdefault(path[depth], []).append((path, unit))
    parts = [*(_tree(members, depth + 1) for members in inner.values()), *parts]
    if len(parts) == 1:
        return parts[0]
    return _Unit(tuple(parts), tuple(cpu for part in parts for cpu in part.cpus), len(cores))


def _seat(comm: Floats | SparseMatrix, loads: Floats, threads: Nodes, unit: _Unit) -> dict[int, int]:
    """Cpu of each thread of a unit."""
    if not unit.parts:
        return _seat_core(comm, loads, threads, unit.cpus)
    # While cores suffice a core counts as one seat, so that threads spread over cores before they share one.
    spread = len(threads) <= unit.cores
    seats = [part.cores if spread else len(part.cpus) for part in unit.parts]
    uneven = None if spread else TOLERANCE if len(threads) > len(unit.cpus) else CORE_TOLERANCE
    seated: dict[int, int] = {}
    for part, members in zip(unit.parts, _divide(comm, loads, threads, seats, uneven), strict=True):
        if len(members):
            seated |= _seat(comm, loads, members, part)
    return seated


def _seat_core(
    comm: Floats | SparseMatrix, loads: Floats, threads: Nodes, cpus: tuple[int, ...]
) -> dict[int, int]:
    """Cpu of each thread of one core: hwthreads are alike, so only sharing one matters."""
    uneven = TOLERANCE if len(threads) > len(cpus) else None
    parts = _divide(comm, loads, threads, [1] * len(cpus), uneven)
    return {thread: cpu for cpu, members in zip(cpus, parts, strict=True) for thread in members.tolist()}


def _part(comm: Floats | SparseMatrix, threads: Nodes) -> Floats:
    return (
        comm.part(threads)
        if isinstance(comm, SparseMatrix)
        else np.ascontiguousarray(comm[np.ix_(threads, threads)])
    )


def _divide(
    comm: Floats | SparseMatrix, loads: Floats, threads: Nodes, seats: Sequence[int], uneven: float | None
) -> list[Nodes]:
    """Threads by unit, in proportion to the units' seats, least communication between units.

    uneven: how far a unit's load may be off its share; None: loads do not count.
    """
    sizes = node_sizes(len(threads), np.asarray(seats, dtype=np.int64))
    if len(sizes) == 1 or len(threads) < 2 or sizes.max() == 1:
        return np.split(threads, np.cumsum(sizes)[:-1])
    count, own = len(sizes), np.ascontiguousarray(loads[threads])
    problem = Problem(
        comm=_part(comm, threads),
        loads=own,
        sizes=sizes,
        distances=1.0 - np.eye(count),
        targets=own.sum() * np.asarray(seats) / sum(seats),
        tolerance=TOLERANCE if uneven is None else uneven,
        objective="remote" if uneven is None else "balanced",
        effort="fast",
    )
    places = best(problem)
    return [threads[places == unit] for unit in range(count)]
