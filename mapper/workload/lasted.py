"""How long a recorded run takes for a kernel that moves pages after a while (AutoNUMA)."""

import math

from numaplan.profiler import Trace

# In the lab's guest, which is some hundred times slower than a machine: fitted to 16 programs.
ACCESS_S = 14e-9
MISS_S = 370e-9  # of an access that its thread's first cache does not answer


def lasted_s(trace: Trace) -> float:
    """Seconds: those of the run, where it was on a machine; of an emulated one those that it takes in the
    lab, where what the kernel does is counted."""
    from numaplan.analyzer import counter_totals

    duration = int(trace.meta.get("duration_ns", "0"))
    if trace.meta.get("clock") != "accesses":
        return duration / 1e9 if duration > 0 else math.inf
    missed = counter_totals(trace).get("l1_misses")
    return ACCESS_S * duration + MISS_S * (0.0 if missed is None else float(missed.clip(0).sum()))
