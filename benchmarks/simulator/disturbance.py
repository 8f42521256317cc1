"""What else runs: the system's own work, and the tool that samples.

Both want a cpu. Free threads of the node make room for it together; a thread bound to that very cpu cannot
([IMAR], 7.1: negligible scripts and the tool are enough to show that).
"""

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulator.calibration import PHYSICS
from benchmarks.simulator.world import FREE, World


def undisturbed(world: World, samples: float) -> NDArray[np.float64]:
    """(T,) what is left to each thread; samples: accesses sampled a second and thread.

    A sample takes its time from the thread, and from whoever reads it, on one node unless a cpu is idle.
    """
    taken, active = np.full(world.nodes, PHYSICS.noise), float(world.active.sum())
    drawn = world.rng.random(world.nodes + 1).tolist()
    noisy = np.zeros(len(world.cpu_node))
    for cpus, place in zip(world.cpus_of, drawn[1:], strict=True):
        noisy[cpus[int(place * len(cpus)) :][:1]] = 1.0
    cost = samples * PHYSICS.sample_s
    if active >= len(world.cpu_node):
        taken[world.cpu_node[int(drawn[0] * len(world.cpu_node))]] += cost * active
    bound = noisy[world.cpu] * np.minimum(taken, 0.5)[world.node]
    free = (taken / np.maximum(world.seats, 1))[world.node]
    left: NDArray[np.float64] = (1.0 - cost) * (1.0 - np.where(world.bound_cpu != FREE, bound, free))
    return left
