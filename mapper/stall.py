"""How long a memory access waits: what a user asks for first, where the machine's latencies are known."""

from collections.abc import Sequence

import numpy as np

from numaplan.mapper.pages import PageStats
from numaplan.mapper.problem import Floats
from numaplan.profiler.machine import Machine


def mean_latency(traffic: Floats | None, machine: Machine) -> float:
    """Mean ns of an access; -1 where there are none or the machine has no latencies.

    traffic: (K, K) accesses from each node (row) to the memory of each (column), in the machine's order.
    """
    if traffic is None or not machine.latency_ns or not traffic.any():
        return -1.0
    return float((traffic * np.asarray(machine.latency_ns)).sum() / traffic.sum())


def first_touch_traffic(stats: PageStats, thread_nodes: Sequence[int], machine: Machine) -> Floats | None:
    """Traffic when threads are on these nodes (N,) and the kernel puts pages where they are touched first.

    None when the first touch of pages is not known. Pages first touched by a thread that is not among the N
    do not count.
    """
    if stats.toucher is None:
        return None
    column = {node.id: place for place, node in enumerate(machine.nodes)}
    node_of = np.array([column[node] for node in thread_nodes], dtype=np.int64)
    known = np.ones(len(stats.thread), dtype=bool)
    for thread in (stats.thread, stats.toucher):
        known &= (thread >= 0) & (thread < len(node_of))
    traffic = np.zeros((len(machine.nodes), len(machine.nodes)))
    places = (node_of[stats.thread[known]], node_of[stats.toucher[known]])
    np.add.at(traffic, places, stats.accesses[known])
    return traffic
