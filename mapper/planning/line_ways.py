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
    taken = taken_of(cpus, seats)
    column = {cpu: at for at, cpu in enumerate(place_of)}
    on = np.zeros((len(taken), len(column)))  # the share of its time that each is on each cpu
    for thread, (own, seat) in enumerate(zip(cpus, taken, strict=True)):
        near = {seat, *(cpu for cpu in own if place_of[cpu] == place_of[seat])}
        on[thread, [column[cpu] for cpu in near]] = 1.0 / len(near)
    floating = within[[place_of[cpu] for cpu in taken], None] * (1.0 - on @ on.T)
    answer: Floats = np.where(np.equal.outer(taken, taken), floating, transfers(machine, taken))
    return answer
