"""Keep planned memory within what each node has."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler.machine import Machine

if TYPE_CHECKING:
    from numaplan.mapper.pages import RunTable

RESERVE = 0.1  # of a node's memory is left to the kernel, stacks and everything unplanned


def fit_capacity(tables: Sequence["RunTable"], machine: Machine) -> None:
    """Move runs off overfull nodes (in place), those first that lose fewest local accesses a byte.

    A run goes to the node with room that touches it most, then to the nearest. When nothing has room it
    stays, and the kernel decides. Nodes whose memory is unknown (0) have room without end unless they have
    no memory at all.
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
            share = table.key.bytes / len(table.interleave)
            room[list(table.interleave)] -= share
        else:
            np.subtract.at(room, table.home, table.bytes_of())
    for node in np.flatnonzero(room < 0).tolist():
        _unload(tables, machine, room, node)


def _unload(tables: Sequence["RunTable"], machine: Machine, room: NDArray[np.float64], node: int) -> None:
    """Move runs off one node until it has room again."""
    held = [
        (float(table.accesses[run, node]) / max(int(size), 1), number, run, int(size))
        for number, table in enumerate(tables)
        if not table.interleave
        for run, size in enumerate(table.bytes_of().tolist())
        if table.home[run] == node
    ]
    for _, number, run, size in sorted(held):
        if room[node] >= 0:
            return
        table = tables[number]
        options = np.flatnonzero(room >= size)
        options = options[options != node]
        if not len(options):
            continue
        distance = machine.distance_matrix[node, options]
        chosen = int(options[np.lexsort((distance, -table.accesses[run, options]))[0]])
        table.home[run] = chosen
        room[node] += size
        room[chosen] -= size
