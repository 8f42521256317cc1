"""How well threads perform, after the 3DyRM model ([IMAR], 4)."""

import numpy as np

from ..observation import Floats, Ints, Observation

CACHE_LINE = 64.0  # bytes; S_cache of Eq. 1
_IDLE = 0.01  # of the interval


def performance(observation: Observation) -> Floats:
    """(T,) P = O · I / L with I = O / (A · S_cache) (Eq. 1 and 4); NaN for threads that did nothing to
    judge by. O is a rate, so that intervals of different length compare.

    Where the machine counts no operations, accesses stand for them (not the time a thread ran: that is longer
    for one that waits for memory, or whose cpu is slow, and would count as work done); where it measures no
    latencies, the unloaded ones of the machine do. Both then vary with placement through A and L alone.
    """
    threads = observation.threads
    accesses = threads.accesses.sum(axis=1)
    operations = threads.operations if threads.operations.any() else accesses
    latency = np.where(np.isnan(threads.latency_ns), unloaded_latency(observation), threads.latency_ns)
    judged = (accesses > 0) & (operations > 0) & (latency > 0) & (threads.busy >= _IDLE)
    result = np.full(threads.count, np.nan)
    rows = np.flatnonzero(judged)
    intensity = operations[rows] / (accesses[rows] * CACHE_LINE)
    result[rows] = operations[rows] / observation.interval_s * intensity / latency[rows]
    return result


def unloaded_latency(observation: Observation) -> Floats:
    """(T,) the mean latency that the machine's matrix gives for each thread's accesses; NaN without
    accesses.
    """
    threads = observation.threads
    total = threads.accesses.sum(axis=1)
    waits: Floats = (threads.accesses * observation.machine.latency_ns[threads.node]).sum(axis=1)
    mean: Floats = np.divide(waits, total, out=np.full(threads.count, np.nan), where=total > 0)
    return mean


def relative_performance(values: Floats, process: Ints, processes: int) -> Floats:
    """(T,) P over the mean P of the thread's process (Eq. 5); NaN where P is."""
    known = ~np.isnan(values)
    sums = np.bincount(process[known], values[known], minlength=processes)
    counts = np.bincount(process[known], minlength=processes)
    means = np.divide(sums, counts, out=np.full(processes, np.nan), where=counts > 0)
    relative: Floats = values / means[process]
    return relative


def preferred_nodes(accesses: Floats) -> Ints:
    """(n,) the node with most accesses (Eq. 2 and 3), the lowest on a tie; -1 where there is none."""
    return np.where(accesses.sum(axis=1) > 0, np.argmax(accesses, axis=1), -1)
