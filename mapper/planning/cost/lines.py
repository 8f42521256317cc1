"""Lines that threads take from each other on the cpus they may have: how many, and how long each takes."""

from collections.abc import Mapping, Sequence

import numpy as np

from numaplan.machine import Machine, latencies, transfers

from ...threads.problem import Floats
from ...workload.use import ThreadUse
from .cpu_sets import Sets, taken_of


def lines_between(use: ThreadUse, place_of: Mapping[int, int], cpus: Sequence[int]) -> Floats:
    """(N, N) lines that threads on these cpus take from each other: fewer where they share a cache.

    place_of: number by cpu.
    """
    places = np.array([place_of[cpu] for cpu in cpus])
    answer: Floats = np.where(np.equal.outer(places, places), use.near, use.lines)
    return answer


def ways_anywhere(use: ThreadUse, machine: Machine, place_of: Mapping[int, int]) -> Floats:
    """(N, N) ns that a line takes in the mean between threads on any two cpus, as likely as any other two: of
    all lines that they take where they share no cache. place_of: number by cpu."""
    cpus = list(place_of)
    places = np.array([place_of[cpu] for cpu in cpus])
    ways, within = transfers(machine, cpus), np.equal.outer(places, places)
    near, apart = (
        float(ways[which].sum()) / max(len(cpus) * (len(cpus) - 1), 1) for which in (within, ~within)
    )
    answer: Floats = apart + near * np.divide(
        use.near, use.lines, out=np.ones_like(use.lines), where=use.lines > 0
    )
    return answer


def way_apart(machine: Machine) -> float:
    """ns that a line takes from node to node, in the mean."""
    ways = latencies(machine)[~np.eye(len(machine.nodes), dtype=bool)]
    return float(ways.mean()) if len(ways) else 0.0


def at_one_price(use: ThreadUse, ways: Floats) -> tuple[Floats, float]:
    """(N, N) lines for a solver that knows one price of a line within a place, alike for all pairs; and what
    share of its lines a pair takes there, in the mean. ways: (places, places) ns.

    A pair that takes more of its lines there than others has less to gain by being there: its lines are made
    fewer, so that two threads apart cost as much more than two together as these do.
    """
    lines, near = use.lines, use.near
    if use.kept is None or len(ways) < 2 or not lines.any():
        return lines, 1.0
    share = float(near.sum() / lines.sum())
    apart, within = float(ways[~np.eye(len(ways), dtype=bool)].mean()), float(np.diag(ways).mean())
    if apart <= within:
        return lines, share
    return (lines * apart - near * within) / (apart - share * within), share


def line_ways(
    machine: Machine, place_of: Mapping[int, int], within: Floats, cpus: Sets, seats: Sets
) -> Floats:
    """(N, N) ns that a line takes from the column's thread to the row's, each taken to be on its seat.

    Where two have one seat and either may leave it, they are on one cpu only as often as chance has it, each
    as long on each of its cpus around: for the rest of the time it is as between two cpus of their place.
    place_of: number by cpu; within: (places,) ns that a line takes there.
    """
    taken = np.array(taken_of(cpus, seats), np.int64)
    ways: Floats = transfers(machine, taken)
    wide = np.array([len(own) > 1 for own in cpus], bool)
    for seat in np.unique(taken[wide]).tolist():
        members = np.flatnonzero(taken == seat)
        if len(members) < 2:
            continue
        place = place_of[seat]
        near = [{seat, *(cpu for cpu in cpus[thread] if place_of[cpu] == place)} for thread in members]
        column = {cpu: at for at, cpu in enumerate(sorted(set().union(*near)))}
        on = np.zeros((len(members), len(column)))  # the share of its time that each is on each cpu
        for row, own in zip(on, near, strict=True):
            row[[column[cpu] for cpu in own]] = 1.0 / len(own)
        ways[np.ix_(members, members)] = within[place] * (1.0 - on @ on.T)
    return ways
