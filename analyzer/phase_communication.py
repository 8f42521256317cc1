"""The communication matrix of each phase, in a second pass over the samples."""

from collections.abc import Sequence

import numpy as np

from numaplan.common import UsageError
from numaplan.profiler import Trace

from .analyzed import Analysis
from .communication.combining import Communication
from .communication.counter import CommunicationCounter
from .communication.transfers import transfers_of
from .samples.trace_samples import TraceSamples


def communication_by_phase(
    trace: Trace, analysis: Analysis, ranges: Sequence[tuple[int, int]] | None = None
) -> list[Communication]:
    """Who communicates with whom in each phase; counting begins anew with each of them.

    ranges: half-open ranges of slices of the analysis' timeline, which may overlap (default: its phases by
    Algorithm 1, which share their border slices). Raises UsageError for a range outside of the timeline.
    """
    line = analysis.timeline
    chosen = [(phase.start, phase.end) for phase in analysis.phases] if ranges is None else list(ranges)
    if any(not 0 <= start < end <= len(line.per_thread) for start, end in chosen):
        raise UsageError("a phase is outside the timeline", f"give slices in 0..{len(line.per_thread)}")
    threads = len(analysis.threads)
    samples = TraceSamples(trace)
    transfers = transfers_of(trace, samples.regions.process, samples.regions.runtimes)
    if transfers and not transfers.partial:
        # What was counted before the first sample is of the first slice, and what after the last of the last.
        inner = {at: line.start_ns + at * line.slice_ns for at in range(1, len(line.per_thread))}
        return [transfers.communication(inner.get(start), inner.get(end)) for start, end in chosen]
    found: list[Communication | None] = [None] * len(chosen)
    open_now: dict[int, CommunicationCounter] = {}
    for piece in samples.pieces():
        at = np.clip((piece.time_ns - line.start_ns) // line.slice_ns, 0, len(line.per_thread) - 1)
        for number, (start, end) in enumerate(chosen):
            part = slice(*np.searchsorted(at, [start, end]).tolist())
            if part.start == part.stop:
                continue
            if number not in open_now:
                open_now[number] = CommunicationCounter(
                    threads, exact=analysis.period == 1, weights=samples.access_weights
                )
            shared = piece.shared[part]
            open_now[number].add(
                piece.thread[part][shared], piece.key[part][shared], piece.is_write[part][shared]
            )
        # A finished phase's tables are given back before the next ones grow.
        for number in [number for number in open_now if chosen[number][1] <= at[-1]]:
            found[number] = open_now.pop(number).result()
    for number, counter in open_now.items():
        found[number] = counter.result()
    return [one or CommunicationCounter(threads).result() for one in found]
