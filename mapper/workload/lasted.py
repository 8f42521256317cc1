"""How long a run takes, and its processes do, for a kernel that moves pages after a while (AutoNUMA)."""

import math
from collections.abc import Sequence

import numpy as np

from numaplan.profiler import Trace

from ..threads.problem import Floats
from .activity import Activity

# In the lab's guest, which is some hundred times slower than a machine: fitted to the pages moved there.
ACCESS_S = 56e-9
MISS_S = 1.5e-6  # of an access that its thread's first cache does not answer


def lasted_s(trace: Trace) -> float:
    """Seconds: those of the run, where it was on a machine; of an emulated one those that it takes in the
    lab, where what the kernel does is counted."""
    from numaplan.analyzer import counter_totals

    duration = int(trace.meta.get("duration_ns", "0"))
    if trace.meta.get("clock") != "accesses":
        return duration / 1e9 if duration > 0 else math.inf
    missed = counter_totals(trace).get("l1_misses")
    return ACCESS_S * duration + MISS_S * (0.0 if missed is None else float(missed.clip(0).sum()))


def ran_of(
    threads: Sequence[tuple[str, str]], lives: Sequence[tuple[int, int]], activity: Activity | None
) -> Floats:
    """(N,) share 0..1 of the run in which each thread's process runs; where nobody looked who does, for which
    it is there."""
    names = [process for process, _ in threads]
    found, own = np.unique(names, return_inverse=True)
    if len(found) < 2 or activity is None or not activity.looked:
        return lived_of(threads, lives)
    return activity.shares_of([np.flatnonzero(own == number) for number in range(len(found))])[own]


def lived_of(threads: Sequence[tuple[str, str]], lives: Sequence[tuple[int, int]]) -> Floats:
    """(N,) share 0..1 of the run for which each thread's process is there; 1 where it is not known."""
    if len(lives) != len(threads) or not len(threads):
        return np.ones(len(threads))
    start, end = np.array(lives, np.float64).T
    stays = end < 0
    if start[stays].max(initial=-1.0) >= end.max():
        return np.ones(len(threads))  # of the run's end it is known only that it comes later
    end = np.where(stays, end.max(), end)
    _, own = np.unique([process for process, _ in threads], return_inverse=True)
    first, last = np.full(own.max() + 1, np.inf), np.full(own.max() + 1, -np.inf)
    np.minimum.at(first, own, start)
    np.maximum.at(last, own, end)
    whole = float(last.max() - first.min())
    return np.maximum(last - first, 0.0)[own] / whole if whole > 0 else np.ones(len(threads))
