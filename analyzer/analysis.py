"""Everything about a trace that a planner or a report asks for, in one pass over its samples."""

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.common import BackgroundCall, UsageError
from numaplan.profiler import Trace

from .analyzed import Analysis, ThreadInfo
from .communication.blocks import MAX_THREADS
from .communication.combining import Communication
from .communication.counter import CommunicationCounter
from .communication.side_by_side import one_part
from .communication.transfers import transfers_of
from .memory.local_shares import local_shares_counted
from .misses import expected_misses
from .notes import communication_note, ended_note, processes_note, recording_notes, take_turns
from .samples.preparing import count_threads
from .samples.trace_samples import SharingSamples, TraceSamples
from .timeline.changes import change_points
from .timeline.counted_loads import counted_loads
from .timeline.partners import PartnerCounter
from .timeline.phases import access_load_vector, describe_phases, divide_phases, scaled_loads
from .timeline.timeline import SLICE_NS, TimelineCounter

MANY_DRAM = 50  # samples a thread from which misses of the last cache are enough to tell loads apart
LEAST_MISSES = 0.01
FEWEST_SLICES = 400
SAMPLES_A_SLICE = 20  # fewer on average and the lowest slices are chance


def analyze_trace(
    trace: Trace,
    *,
    slice_ns: int = 0,
    samples: TraceSamples | None = None,
    meanwhile: Callable[[list[int]], None] | None = None,
) -> Analysis:
    """Analyze a trace; slice_ns: width of the timeline's slices (0: 1 ms, or what suits the samples).

    samples: those of the trace, where the caller has them. meanwhile: called while communication is counted
    in a thread, with the times in ns at which a phase begins, or rates or partners change. Raises UsageError
    when the trace has no threads, too many, or no samples.
    """
    samples = samples or TraceSamples(trace)
    count = samples.threads
    if not 1 <= count <= MAX_THREADS:
        raise UsageError(f"{trace.path}: {count} threads", f"1 to {MAX_THREADS} can be analyzed")
    if not samples.count:
        raise UsageError(f"{trace.path}: no sample belongs to a thread", "record it again")
    period = samples.period
    use_dram = _has_enough_misses(samples)
    counted = samples.dram_count if use_dram else samples.count
    width = slice_ns or _slice_width(samples.last_ns - samples.first_ns, counted)
    accesses, missed = (TimelineCounter(count, samples.first_ns, samples.last_ns, width) for _ in range(2))
    transfers = transfers_of(trace, samples.regions.process, samples.regions.runtimes)
    estimated = transfers is None or transfers.partial
    counter = CommunicationCounter(count, exact=period == 1, weights=samples.access_weights)
    partners = PartnerCounter(accesses.result())
    samples_of_thread = np.zeros((2, count), np.int64)
    shared = writes = 0
    sharing: SharingSamples | None = None  # whose partners are counted last, while communication is
    for piece in samples.pieces():
        if sharing:
            partners.add(sharing)
        count_threads(samples_of_thread[0], piece.thread)
        count_threads(samples_of_thread[1], piece.thread, piece.dram)
        for line, chosen in ((accesses, piece.is_access), (missed, piece.dram)):
            line.add(piece.time_ns, piece.thread, piece.weight, chosen)
        sharing = piece.sharing()
        shared += len(sharing.key)
        writes += int(sharing.is_write.sum())
        if estimated:
            counter.add(sharing.thread, sharing.key, sharing.is_write)

    def communication() -> Communication:
        if transfers is None:
            return counter.result()
        if estimated:
            return transfers.with_other_processes(counter.result(), period)
        return transfers.communication()

    counting = BackgroundCall(communication)  # half of all time, without Python's lock
    if sharing:
        partners.add(sharing)
    timeline = msgspec.structs.replace(
        (missed if use_dram else accesses).result(), in_accesses=trace.meta.get("clock") == "accesses"
    )
    ranges = divide_phases(timeline.smoothed)
    misses = expected_misses(missed.result().per_thread, accesses.result().per_thread, samples.dram_weight)
    better: Callable[[int, int], NDArray[np.float64]] | None = misses.between if use_dram else None
    missed_by_thread = misses.total
    exact = counted_loads(trace, count, max(1, period)) if samples.cache_ratio is None else None
    if exact:
        counts = exact.missed if use_dram else exact.accesses
        better = better if counts is None else exact.between(timeline, counts)
        missed_by_thread = missed_by_thread if exact.missed is None else exact.missed.sum(axis=0)
    vector = access_load_vector(timeline.per_thread, ranges, better)
    turns = (
        ["threads take turns: no two of them access memory at the same time"] if take_turns(timeline) else []
    )
    phases = describe_phases(timeline.per_thread, ranges, better)
    changes, partner_changes = change_points(timeline.per_thread), partners.changes()
    recorded = recording_notes(trace, samples_of_thread, use_dram=use_dram, backwards=samples.backwards)
    if meanwhile:
        starts = {*(phase.start for phase in phases[1:]), *partner_changes, *changes}
        meanwhile([timeline.start_ns + at * timeline.slice_ns for at in sorted(starts)])
    found = counting.result()
    told = communication_note(found, count, shared, writes)
    if transfers is not None and transfers.partial:
        told += processes_note(found, samples.regions.process, samples_of_thread[0])
    return Analysis(
        threads=_thread_infos(trace, samples_of_thread),
        pairs=one_part(found.matrix),
        pair_errors=one_part(found.standard_error),
        loads=scaled_loads(vector, timeline.per_thread),
        misses=missed_by_thread,
        load_source="dram" if use_dram else "all",
        timeline=timeline,
        phases=phases,
        changes=changes,
        confidence=found.confidence,
        events=found.events,
        samples=samples.count,
        shared_samples=shared,
        period=period,
        notes=[*ended_note(trace), *told, *turns, *recorded],
        layers=found.weights,
        partner_changes=partner_changes,
        local=local_shares_counted(trace),
        left_out=transfers.left_out if transfers is not None else 0,
        exchange_slices=partners.slices_a_bin,
        exchanges=partners.result(),
    )


def _slice_width(span_ns: int, counted: int) -> int:
    """1 ms as in the paper; more where samples are sparse, less for a short run."""
    sparse = span_ns * SAMPLES_A_SLICE // max(1, counted)
    return max(1, min(max(SLICE_NS, sparse), span_ns // FEWEST_SLICES))


def _has_enough_misses(samples: TraceSamples) -> bool:
    """Whether there are enough misses of the last cache to tell the threads' loads apart.

    Where hardly an access misses, the few that do are first touches, mostly by the thread that initialises.
    """
    share = 1.0 if samples.has_miss_events else samples.dram_count / samples.count
    return samples.dram_count >= MANY_DRAM * samples.threads and share >= LEAST_MISSES


def _thread_infos(trace: Trace, samples_of_thread: NDArray[np.int64]) -> list[ThreadInfo]:
    return [
        ThreadInfo(
            row.thread, row.process, row.path, row.name or "", *samples_of_thread[:, row.thread].tolist()
        )
        for row in trace.thread_rows
    ]
