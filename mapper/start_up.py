"""Load of the time in which one thread is alone: it cannot be shared out, so it must not unbalance a plan.

Many programs read or make their data in the main thread and then wait for the threads that it starts. What
main accesses before the first of them starts, or after the last one ended, competes with nobody; counted as
its load, a balanced plan would keep a node nearly empty for a thread that sleeps while the others work.
"""

from typing import TYPE_CHECKING

import numpy as np

from numaplan.mapper.problem import Floats

if TYPE_CHECKING:
    from numaplan.analyzer import Analysis
    from numaplan.profiler import Trace

WORTH_SAYING = 0.1  # of all load


def crowded_time(trace: "Trace") -> tuple[int, int]:
    """From when on and until when threads beside the main one live; ns, -1 where not known or to the end."""
    others = [row for row in trace.thread_rows if row.path != "0"]
    if not others or len({row.process for row in trace.thread_rows}) > 1:
        return -1, -1  # of processes side by side none is alone by its own threads
    ends = [row.end_ns for row in others]
    return min(row.start_ns for row in others), max(ends) if min(ends) >= 0 else -1


def shared_loads(analysis: "Analysis", time: tuple[int, int]) -> tuple[Floats, Floats | None, str]:
    """(N,) loads and (P, N) loads by phase without those of the time alone, and what to say of it if much.

    time: as `crowded_time` gives it. A thread's load is cut in proportion to its accesses.
    """
    line = analysis.timeline
    slices = len(line.per_thread)
    first, last = (
        min(max((at - line.start_ns) // line.slice_ns, 0), slices) if at >= 0 else default
        for at, default in zip(time, (0, slices), strict=True)
    )
    alone = np.ones(slices, dtype=bool)
    alone[first : last + 1] = False
    phases = [_rest(phase.loads, line.per_thread[phase.start : phase.end], alone[phase.start : phase.end])
              for phase in analysis.phases]  # fmt: skip
    loads = _rest(analysis.loads, line.per_thread, alone)
    total, left = float(analysis.loads.sum()), float(loads.sum())
    said = ""
    if total > 0 and 1 - left / total >= WORTH_SAYING:
        said = f"{1 - left / total:.0%} of the load is the main thread's while it is alone: not balanced"
    return loads, np.array(phases) if phases else None, said


def _rest(loads: Floats, accesses: Floats, alone: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Floats:
    """(N,) loads less the share of each thread's accesses (S, N) in the slices alone."""
    made = accesses.sum(axis=0)
    answer: Floats = loads * (1 - accesses[alone].sum(axis=0) / np.where(made > 0, made, 1.0))
    return answer
