"""Keep planned memory within what each node has and what its controller can serve.

Faster memory without cpus gets the hottest of it.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from numaplan.machine import Machine, latencies

from .run_table import PAGE, RunTable

RESERVE = 0.1  # of a node's memory is left to the kernel, stacks and everything unplanned
FASTER = 1.1  # times the bandwidth of the node's own memory (HBM has 3 to 6 times)
BUSY = 1.25  # times its share of all traffic that a node may serve
LOSS = 0.1  # of a run's accesses that may become remote for it

Room = NDArray[np.float64]


def fit_capacity(tables: Sequence[RunTable], machine: Machine) -> None:
    """Move runs between nodes (in place) until none holds more than it has.

    First the hottest go to faster memory near their node. Then overfull nodes give up what loses fewest local
    accesses a byte, cut where a part is enough, to the node with room that touches it most, else the nearest.
    When nothing has room it stays, and the kernel decides. What is spread is not on nodes without memory.
    """
    for table in tables:
        if table.interleave:
            table.interleave = _with_memory(table.interleave, machine)
    room = free_bytes(tables, machine)
    for home, fast in _faster_memory(machine):
        _promote(tables, room, home, fast)
    for node in np.flatnonzero(room < 0).tolist():
        _unload(tables, machine, room, node)


def _with_memory(nodes: tuple[int, ...], machine: Machine) -> tuple[int, ...]:
    """Those of the nodes that have memory, or all that do; the same where no node's is known."""
    holding = [place for place, node in enumerate(machine.nodes) if node.memory_bytes]
    kept = tuple(node for node in nodes if node in holding)
    return kept or tuple(holding) or nodes


def free_bytes(tables: Sequence[RunTable], machine: Machine) -> Room:
    """(K,) what each node has left, negative where it is overfull.

    Nodes whose memory is unknown (0) have room without end unless other nodes' is known.
    """
    known = any(node.memory_bytes for node in machine.nodes)
    room = np.array(
        [
            node.memory_bytes * (1 - RESERVE) if node.memory_bytes else (-1.0 if known else np.inf)
            for node in machine.nodes
        ]
    )
    for table in tables:
        if table.interleave:
            room[list(table.interleave)] -= table.key.bytes * table.copies / len(table.interleave)
        else:
            np.subtract.at(room, table.home, table.bytes_of())
    return room


def _faster_memory(machine: Machine) -> Iterator[tuple[int, int]]:
    """(node with cpus, memory-only node with more bandwidth from it that is nearest to it)."""
    if not machine.bandwidth_mb_s:
        return
    distance = machine.distance_matrix
    cpus = [place for place, node in enumerate(machine.nodes) if node.cpus]
    for fast, node in enumerate(machine.nodes):
        if node.cpus or not node.memory_bytes:
            continue
        home = min(cpus, key=lambda place: (distance[place, fast], place))
        own, other = (machine.bandwidth_mb_s[home][place] for place in (home, fast))
        if 0 < FASTER * own < other:  # 0: not known
            yield home, fast


def faster_memory_note(traffic: Room | None, machine: Machine) -> list[str]:
    """What to say of accesses to faster memory, which are no local ones; traffic: (K, K) of a PagePlan."""
    if traffic is None:
        return []
    used = [(home, fast) for home, fast in _faster_memory(machine) if traffic[home, fast] > 0]
    if not used:
        return []
    share = sum(float(traffic[home, fast]) for home, fast in used) / float(traffic.sum())
    band = machine.bandwidth_mb_s
    times = min(band[home][fast] / band[home][home] for home, fast in used)
    ids = ", ".join(str(machine.node_ids[fast]) for _, fast in used)
    return [
        f"{share:.0%} of the accesses go to memory without cpus (node {ids}) with {times:.1f} times the"
        " bandwidth of a node's own; they do not count as local"
    ]


def _held(tables: Sequence[RunTable], node: int, users: slice) -> list[tuple[float, int, int]]:
    """(accesses from the nodes `users` a byte, table, first page) of the runs on a node, least first."""
    found: list[tuple[float, int, int]] = []
    for number, table in enumerate(tables):
        if table.interleave:
            continue
        weights = table.accesses[:, users].sum(axis=1) / np.maximum(table.bytes_of(), 1)
        runs = np.flatnonzero(table.home == node)
        found += zip(weights[runs].tolist(), [number] * len(runs), table.first[runs].tolist(), strict=True)
    return sorted(found)


def _promote(tables: Sequence[RunTable], room: Room, home: int, fast: int) -> None:
    """Move the hottest runs of a node to faster memory while it has room."""
    for heat, number, page in reversed(_held(tables, home, slice(None))):
        table = tables[number]
        run = int(np.searchsorted(table.first, page))
        size = int(table.bytes_of()[run])
        if heat > 0 and room[fast] >= size:
            table.home[run], table.away = fast, True
            room[home] += size
            room[fast] -= size


def _unload(tables: Sequence[RunTable], machine: Machine, room: Room, node: int) -> None:
    """Move runs, or parts of them, off one node until it has room again."""
    far = latencies(machine)[node]
    for _, number, page in _held(tables, node, slice(node, node + 1)):
        table = tables[number]
        run = int(np.searchsorted(table.first, page))
        moved = -1
        while room[node] < 0 and moved != run:
            chosen, pages = _part_to_move(table, run, room, node, far)
            if pages == 0:  # of a rule with fewer blocks a page may still find room
                break
            moved = _cut(table, run, pages)
            table.home[moved], table.away = chosen, True
            size = int(table.bytes_of()[moved])
            room[node] += size
            room[chosen] -= size


def _part_to_move(table: RunTable, run: int, room: Room, node: int, far: Room) -> tuple[int, int]:
    """Where a run of an overfull node goes, and how many pages of it; 0: nowhere has room for one.

    far: (K,) of each node from this one. As many pages as are too much, to a node that has room for them,
    else what the emptiest takes. A page of a rule is one of each block that lives at the same time.
    """
    each, size = PAGE * table.copies, int(table.bytes_of()[run])
    options = np.flatnonzero(room >= min(size, each))
    if size == 0 or len(options) == 0:
        return node, 0
    pages = int(table.first[run + 1] - table.first[run])
    wanted = min(pages, math.ceil(-room[node] / each))
    whole = options[room[options] >= min(size, wanted * each)]
    if len(whole) == 0:
        options = options[room[options] == room[options].max()]
        wanted = min(wanted, int(room[options[0]] / each))
    else:
        options = whole
    nearest = np.lexsort((far[options], -table.accesses[run, options]))[0]
    return int(options[nearest]), wanted


def _cut(table: RunTable, run: int, pages: int) -> int:
    """Make the last pages of a run one of its own; the number of that run (the run itself if it is all)."""
    start, end = int(table.first[run]), int(table.first[run + 1])
    border = end - pages
    if border <= start:
        return run
    share = (end - border) / (end - start)
    table.first = np.insert(table.first, run + 1, border)
    table.accesses = np.insert(table.accesses, run + 1, table.accesses[run] * share, axis=0)
    table.accesses[run] *= 1 - share
    table.home = np.insert(table.home, run + 1, table.home[run])
    return run + 1


def spread_traffic(tables: Sequence[RunTable], machine: Machine) -> None:
    """Move runs that several nodes use about equally off nodes that serve too much (in place).

    Only to nodes that lose at most LOSS of the run's accesses, have room, and are left below the giving one.
    """
    nodes = len(machine.nodes)
    served = np.zeros(nodes)
    for table in tables:
        if table.interleave:
            served[list(table.interleave)] += table.accesses.sum() / len(table.interleave)
        else:
            np.add.at(served, table.home, table.accesses.sum(axis=1))
    cpus = np.array([len(node.cpus) for node in machine.nodes], dtype=np.float64)
    share = served.sum() * cpus / cpus.sum()
    room = free_bytes(tables, machine)
    for _, number, run in sorted(_movable(tables)):
        table = tables[number]
        home, accesses = int(table.home[run]), table.accesses[run]
        total, size = float(accesses.sum()), int(table.bytes_of()[run])
        if served[home] <= BUSY * share[home] or share[home] == 0:
            continue
        fits = (accesses >= accesses[home] - LOSS * total) & (room >= size) & (share > 0)
        fits &= served + total < served[home]
        fits[home] = False
        if fits.any():
            options = np.flatnonzero(fits)
            chosen = int(options[np.argmin((served[options] + total) / share[options])])
            table.home[run], table.away = chosen, True
            served[home] -= total
            served[chosen] += total
            room[home] += size
            room[chosen] -= size


def _movable(tables: Sequence[RunTable]) -> list[tuple[float, int, int]]:
    """(share of accesses lost at least, table, run) of runs with a second node nearly as good."""
    found = []
    for number, table in enumerate(tables):
        if table.interleave or table.accesses.shape[1] < 2:
            continue
        totals = table.accesses.sum(axis=1)
        best = table.accesses[np.arange(len(table.home)), table.home]
        others = table.accesses.copy()
        others[np.arange(len(table.home)), table.home] = -1
        loss = (best - others.max(axis=1)) / np.maximum(totals, 1)
        found += [(float(loss[run]), number, int(run)) for run in np.flatnonzero(loss <= LOSS)]
    return found
