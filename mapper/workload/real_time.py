"""Threads that run in real time: before all others, until they wait. The kernel moves no memory for them
(AutoNUMA)."""

import numpy as np

from numaplan.profiler import Trace

MOST = 0.5  # of all accesses, from which a program is one of such threads
REASON = (
    "most of it is done by threads that run in real time (SCHED_FIFO, SCHED_RR, SCHED_DEADLINE): they do not "
    "take turns as others do, so that they would wait for each other on few cpus"
)


def real_time_share(trace: Trace) -> float:
    """The share 0..1 of all accesses that such threads make; 0 where the recording does not tell."""
    from numaplan.analyzer import counter_totals

    totals = counter_totals(trace)
    if "real_time" not in totals:
        return 0.0
    made = sum((np.maximum(totals[name], 0.0) for name in ("loads", "stores") if name in totals), np.zeros(1))
    return float((made * (totals["real_time"] > 0)).sum()) / max(float(made.sum()), 1.0)
