"""How long a memory access waits: what a user asks for first, where latencies or bandwidths are known."""

import numpy as np

from numaplan.mapper.problem import Floats
from numaplan.profiler.machine import Machine

LINE = 64  # bytes


def mean_latency(traffic: Floats | None, machine: Machine) -> float:
    """Mean ns of an access; -1 where there are none or the machine has no latencies.

    traffic: (K, K) accesses from each node (row) to the memory of each (column), in the machine's order.
    """
    if traffic is None or not machine.latency_ns or not traffic.any():
        return -1.0
    return float((traffic * np.asarray(machine.latency_ns)).sum() / traffic.sum())


def serving_time(traffic: Floats | None, machine: Machine) -> float:
    """Mean ns an access in which the busiest memory hands out its cache lines; -1 as `mean_latency`.

    Threads that wait for nothing else can be no faster than that: each memory takes, for each node, the
    node's accesses times a line over the bandwidth between the two.
    """
    if traffic is None or not machine.bandwidth_mb_s or not traffic.any():
        return -1.0
    bandwidth = np.asarray(machine.bandwidth_mb_s, np.float64)
    if (bandwidth[traffic > 0] <= 0).any():
        return -1.0
    each = np.divide(traffic * LINE * 1e3, bandwidth, out=np.zeros_like(bandwidth), where=traffic > 0)
    return float(each.sum(axis=0).max() / traffic.sum())


def local_share(traffic: Floats | None) -> float:
    """Share of accesses to memory of their own node; -1 where there are none."""
    if traffic is None or not traffic.any():
        return -1.0
    return float(np.trace(traffic) / traffic.sum())
