"""After the nodes: which cpu of its node each thread gets.

Threads that share most get the same last-level cache, then the same core; every thread has a cpu of its own
while there are enough, and a core of its own while there are enough cores. More threads than cpus share in
turn.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from numaplan.mapper.links import Links
from numaplan.mapper.methods.best import best
from numaplan.mapper.problem import Floats, Nodes, Problem, node_sizes
from numaplan.profiler.machine import Machine

Cores = list[tuple[int, ...]]


def assign_cpus(
    comm: Floats | Links, machine: Machine, nodes: Sequence[int], pinned: Mapping[int, int] | None = None
) -> list[tuple[int, ...]]:
    """The cpus of each thread: comm (N, N) symmetric, nodes (N,) ids. One cpu a thread.

    pinned: cpu by number of the thread; the other threads get the cpus of their node that are left, or all
    of them when none is left.
    """
    kept = pinned or {}
    cpus: list[tuple[int, ...]] = [()] * len(nodes)
    for thread, cpu in kept.items():
        cpus[thread] = (cpu,)
    places = np.asarray(nodes)
    for node in machine.cpu_nodes:
        threads = np.array([t for t in np.flatnonzero(places == node.id).tolist() if t not in kept], np.int64)
        left = [cpu for cpu in node.cpus if cpu not in kept.values()] or node.cpus
        if len(threads):
            for thread, cpu in _seat(comm, threads, _caches(machine, node.id, left)).items():
                cpus[thread] = (cpu,)
    return cpus


def _caches(machine: Machine, node: int, cpus: Sequence[int]) -> list[Cores]:
    """Cores of a node by last-level cache; every cpu is a core of its own where the machine does not say."""
    groups: dict[int, Cores] = {}
    known: set[int] = set()
    for core in machine.cores:
        usable = tuple(cpu for cpu in core.cpus if cpu in cpus)
        if core.node == node and usable:
            groups.setdefault(-1 if core.l3 is None else core.l3, []).append(usable)
            known.update(usable)
    loose = [(cpu,) for cpu in cpus if cpu not in known]
    if loose:
        groups.setdefault(-1, []).extend(loose)
    return list(groups.values())


def _seat(comm: Floats | Links, threads: Nodes, caches: list[Cores]) -> dict[int, int]:
    """Cpu of each thread of a node."""
    cores = sum(len(cache) for cache in caches)
    # While cores suffice a core counts as one seat, so that threads spread over cores before they share one.
    seats = [len(cache) if len(threads) <= cores else sum(len(core) for core in cache) for cache in caches]
    seated: dict[int, int] = {}
    for cache, members in zip(caches, _divide(comm, threads, seats), strict=True):
        width = [1 if len(members) <= len(cache) else len(core) for core in cache]
        for core, sharers in zip(cache, _divide(comm, members, width), strict=True):
            for turn, thread in enumerate(sharers.tolist()):
                seated[thread] = core[turn % len(core)]
    return seated


def _part(comm: Floats | Links, threads: Nodes) -> Floats:
    return (
        comm.part(threads)
        if isinstance(comm, Links)
        else np.ascontiguousarray(comm[np.ix_(threads, threads)])
    )


def _divide(comm: Floats | Links, threads: Nodes, seats: Sequence[int]) -> list[Nodes]:
    """Threads by unit, in proportion to the units' seats, least communication between units."""
    sizes = node_sizes(len(threads), np.asarray(seats, dtype=np.int64))
    if len(sizes) == 1 or len(threads) < 2 or sizes.max() == 1:
        return np.split(threads, np.cumsum(sizes)[:-1])
    count = len(sizes)
    problem = Problem(
        comm=_part(comm, threads),
        loads=np.zeros(len(threads)),
        sizes=sizes,
        distances=1.0 - np.eye(count),
        targets=np.zeros(count),
        objective="remote",
        effort="fast",
    )
    places = best(problem)
    return [threads[places == unit] for unit in range(count)]
