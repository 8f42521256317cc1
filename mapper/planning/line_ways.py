"""How long lines take between threads of which it is known on which cpus they may run."""

from collections.abc import Mapping

import numpy as np

from numaplan.machine import Machine, transfers

from ..threads.problem import Floats
from .cpu_sets import Sets, taken_of


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
