"""Everything about a trace that a planner or a report asks for, in one pass over its samples."""

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.common import BackgroundCall, UsageError
from numaplan.profiler import Trace

from .communication.blocks import MAX_THREADS
from .communication.combining import Communication
from .communication.counter import CommunicationCounter
from .communication.transfers import transfers_of
from .misses import expected_misses
from .notes import communication_note, recording_notes, take_turns
from .samples.preparing import count_threads
from .samples.trace_samples import SharingSamples, TraceSamples
from .timeline.changes import change_points
from .timeline.counted_loads import counted_loads
from .timeline.partners import PartnerCounter
from .timeline.phases import Phase, access_load_vector, describe_phases, divide_phases, scaled_loads
from .timeline.timeline import SLICE_NS, Timeline, TimelineCounter

if TYPE_CHECKING:
    import networkx as nx

MANY_DRAM = 50  # samples a thread from which misses of the last cache are enough to tell loads apart
LEAST_MISSES = 0.01
FEWEST_SLICES = 400
SAMPLES_A_SLICE = 20  # fewer on average and the lowest slices are chance


class ThreadInfo(msgspec.Struct, frozen=True):
    """One thread: its identity, its samples, and those of them that missed the last cache."""

    thread: int
    process: str
    path: str
    name: str
    samples: int
    dram_samples: int


class Analysis(msgspec.Struct, frozen=True):
    """What a trace says. Threads without samples stay in, with zeros.

    comm: (N, N) symmetric, zero diagonal, in events; standard_error: (N, N); loads: (N,) access load vector
    (CMLB Eq. 3, scaled to accesses seen); load_source: `dram` or `all`, what loads and timeline count;
    misses: (N,) expected accesses to memory, in samples (misses.py); phases: by Algorithm 1; changes: slices
    at which the threads' rates of access change; partner_changes: slices at which threads begin to
    communicate with others than before; exchanges: (bins, pairs of threads in the order of
    numpy.triu_indices) events in bins of exchange_slices slices, none after a merge; confidence: 0..1, how
    far the matrix would come out the same from other samples and other ways of counting; notes: what a reader
    must know to trust it rightly.
    """

    threads: list[ThreadInfo]
    comm: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    loads: NDArray[np.float64]
    misses: NDArray[np.float64]
    load_source: str
    timeline: Timeline
    phases: list[Phase]
    changes: list[int]
    confidence: float
    events: int
    samples: int
    shared_samples: int
    period: int
    notes: list[str] = msgspec.field(default_factory=list)
    layers: dict[str, float] = msgspec.field(default_factory=dict)
    partner_changes: list[int] = msgspec.field(default_factory=list)
    exchange_slices: int = 1
    exchanges: NDArray[np.int32] = msgspec.field(default_factory=lambda: np.zeros((0, 0), np.int32))

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """Phases by change points: half-open ranges of slices in which neither rates nor partners change."""
        ends = sorted({*self.changes, *self.partner_changes, len(self.timeline.per_thread)} - {0})
        return list(pairwise([0, *ends]))

    @property
    def names(self) -> list[str]:
        """The threads' creation paths, after the process where there are several."""
        several = len({thread.process for thread in self.threads}) > 1
        return [f"{thread.process}:{thread.path}" if several else thread.path for thread in self.threads]

    def graph(self, comm: NDArray[np.float64] | None = None) -> "nx.Graph":
        """Who communicates with whom as a networkx graph: a vertex a thread, an edge a pair that does.

        Vertices: the thread's row in the matrix, with `process`, `path`, `name`, `load` and `samples`. Edges:
        `weight`, events, and `standard_error`. comm: (N, N) another matrix of the same threads, such as that
        of a phase, whose edges have a weight only.
        """
        import networkx as nx

        graph = nx.Graph()
        for row, (thread, load) in enumerate(zip(self.threads, self.loads.tolist(), strict=True)):
            identity = {"process": thread.process, "path": thread.path, "name": thread.name}
            graph.add_node(row, **identity, load=load, samples=thread.samples)
        matrix = self.comm if comm is None else comm
        for one, other in np.argwhere(np.triu(matrix, 1)).tolist():
            graph.add_edge(one, other, weight=float(matrix[one, other]))
            if comm is None:
                graph.edges[one, other]["standard_error"] = float(self.standard_error[one, other])
        return graph


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
    transfers = transfers_of(trace, samples.regions.process, samples.regions.private)
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
    return Analysis(
        threads=_thread_infos(trace, samples_of_thread),
        comm=found.matrix,
        standard_error=found.standard_error,
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
        notes=[*communication_note(found, count, shared, writes), *turns, *recorded],
        layers=found.weights,
        partner_changes=partner_changes,
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
