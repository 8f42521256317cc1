"""How long a memory access waits: what a user asks for first, where the machine's latencies are known."""

import numpy as np

from numaplan.mapper.problem import Floats
from numaplan.profiler.machine import Machine


def mean_latency(traffic: Floats | None, machine: Machine) -> float:
    """Mean ns of an access; -1 where there are none or the machine has no latencies.

    traffic: (K, K) accesses from each node (row) to the memory of each (column), in the machine's order.
    """
    if traffic is None or not machine.latency_ns or not traffic.any():
        return -1.0
    return float((traffic * np.asarray(machine.latency_ns)).sum() / traffic.sum())


def local_share(traffic: Floats | None) -> float:
    """Share of accesses to memory of their own node; -1 where there are none."""
    if traffic is None or not traffic.any():
        return -1.0
    return float(np.trace(traffic) / traffic.sum())
