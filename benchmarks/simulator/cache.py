"""The cache that a node's cpus share: threads push out each other's lines, and find each other's shared ones.

[DINO], 2.1, finds contention for the cache to be at most a fifth of all that co-runners cost; a thread has
`overflow` more misses where all others on its node are far heavier than it. [EXCL], figure 13, finds
fewer misses where threads of a group share a node: of the accesses to what all threads of a task use,
`reuse` hit where all of them are together.
"""

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulator.calibration import PHYSICS
from benchmarks.simulator.world import World

Floats = NDArray[np.float64]


def miss_factor(world: World, mpki: Floats) -> Floats:
    """(T,) factor on misses; mpki: (T,) misses a thousand instructions of each by itself."""
    weight = mpki * world.active
    others = np.bincount(world.node, weight, minlength=world.nodes)[world.node] - weight
    crowd = np.divide(others, others + mpki, out=np.zeros(len(mpki)), where=others + mpki > 0)
    factor: Floats = (1.0 + PHYSICS.overflow * crowd) * (1.0 - PHYSICS.reuse * _together(world))
    return factor


def _together(world: World) -> Floats:
    """(T,) share of its accesses to shared memory, times the share of its task's other threads beside it."""
    cells = world.job_row * world.nodes + world.node
    mates = np.bincount(cells, world.active, minlength=len(world.jobs) * world.nodes)[cells]
    others = np.maximum(mates - world.active, 0.0) / np.maximum(world.threads_of[world.job_row] - 1, 1)
    together: Floats = world.common * others
    return together
