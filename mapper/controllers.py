"""Spread traffic over memory controllers: shared pages, on which little depends, leave the busiest node."""

from collections.abc import Sequence

import numpy as np

from numaplan.mapper.capacity import free_bytes
from numaplan.mapper.page_runs import RunTable
from numaplan.profiler.machine import Machine

BUSY = 1.25  # times its share of all traffic that a node may serve
LOSS = 0.1  # of a run's accesses that may become remote for it


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
            table.home[run] = chosen
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
