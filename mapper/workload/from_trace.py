"""What a plan is made for, read from one trace.

Load of the time in which one thread is alone cannot be shared out, so it must not unbalance a plan. Many
programs read or make their data in the main thread and then wait for the threads that it starts. What main
accesses before the first of them starts, or after the last one ended, competes with nobody; counted as its
load, a balanced plan would keep a node nearly empty for a thread that sleeps while the others work.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.common import BackgroundCall, UsageError
from numaplan.profiler import Trace

from ..threads.problem import Floats, Nodes
from .files import digest
from .larger_inputs import larger_inputs
from .lasted import lasted_s
from .lifetimes.lanes import lanes_of
from .opening import TraceOpening
from .pages import placed_pages, with_runtimes
from .part import WHOLE, Part, part_note
from .real_time import real_time_share
from .roles.mixing import with_mixed
from .use import thread_use
from .workload import Workload

if TYPE_CHECKING:
    from numaplan.analyzer import Analysis, TraceSamples

WORTH_SAYING = 0.1  # of all load


class TraceWorkload(NamedTuple):
    """What a trace says: the workload, the analysis it is from, and when threads beside the main one live."""

    workload: Workload
    analysis: "Analysis"
    crowded: tuple[int, int]


def workload_of_trace(
    path: Path, *, pages: bool = True, by_phase: bool = False, part: Part = WHOLE, larger: bool = False
) -> Workload:
    """Of a trace, or of a part of it; raises UsageError when it cannot be read, shows no thread, or
    nothing but first touches.

    by_phase: communication weighted by the rate of accesses in the phase that it happens in, for the
    objective `phased` (one more pass over the samples); larger: also with larger inputs, where the trace
    tells of these (some more passes).
    """
    return read_trace(path, pages=pages, by_phase=by_phase, part=part, larger=larger).workload


def refuse_first_touches(trace: Trace) -> None:
    """Raise UsageError for a trace of page faults only: any placement would seem as good as another."""
    from numaplan.analyzer import first_touches_only

    if first_touches_only(trace):
        raise UsageError(
            f"{trace.path} has first touches only: who shares memory with whom is not seen",
            "record with '--backend emulate', which sees accesses (nprof setup)",
        )


def read_trace(
    path: Path,
    *,
    pages: bool,
    by_phase: bool,
    larger: bool = False,
    opening: TraceOpening | None = None,
    part: Part = WHOLE,
    first_touches: bool = False,
) -> TraceWorkload:
    """The same, with what further runs are compared with. opening: of the trace, where it has begun;
    first_touches: these are enough, as for ranks that are placed by their messages."""
    digested = BackgroundCall(digest, path)  # outside of Python's lock
    with opening.trace() if opening else Trace.open(path) as whole, part.of(whole) as trace:
        if not first_touches:
            refuse_first_touches(trace)
        found = opened_workload(whole, trace, pages=pages, by_phase=by_phase, larger=larger)
        sources = {"trace": digested.result(), **part.recorded()}
    return found._replace(workload=replace(found.workload, sources=sources))


def opened_workload(
    whole: Trace,
    trace: Trace,
    *,
    pages: bool = True,
    by_phase: bool = False,
    larger: bool = False,
    slice_ns: int = 0,
) -> TraceWorkload:
    """The same of an open trace, and of the part of it that is meant, without its digest.

    slice_ns: width of the timeline's slices, as for `analyze_trace`.
    """
    from numaplan.analyzer import FEW_MISSES, TraceSamples, analyze_trace, thread_roles

    samples = TraceSamples(trace)
    numbers = [row.thread for row in trace.thread_rows]
    counted: list[PageCounts] = []
    counts: list[Callable[[TraceSamples], PageCounts]] = []

    def count_pages(borders: Sequence[int]) -> None:
        counts.append(lambda chosen: trace_pages(trace, numbers, borders, chosen))
        counted.append(counts[0](samples))

    analysis = analyze_trace(
        trace, slice_ns=slice_ns, samples=samples, meanwhile=count_pages if pages else None
    )
    phases, comm = list(analysis.phases), analysis.comm
    if by_phase and len(phases) > 1:
        comm = _weighted_communication(trace, analysis)
    crowded = crowded_time(trace)
    loads, by_phase_loads, note = shared_loads(analysis, crowded)
    said = [note for note in analysis.notes if note != FEW_MISSES]  # what pages go by is said of the plan
    unordered = trace.meta.get("runtime") == "go"
    lane = thread_lanes(trace)
    keeps = thread_roles(trace, samples, lane).keeps & (not unordered)
    use = thread_use(whole, trace, samples, analysis)
    found = Workload(
        threads=[(thread.process, thread.path) for thread in analysis.threads],
        comm=comm,
        loads=loads,
        sources={},
        argv=tuple(trace.argv),
        build_id=trace.meta.get("build_id", ""),
        executable=trace.meta.get("executable", ""),
        pages=counted[0] if pages else None,
        larger=larger_inputs(trace, counted[0], counts[0]) if pages and larger else (),
        machine=trace.machine,
        notes=(*part_note(whole, trace), *said),
        not_balanced=(note,) if note else (),
        phases=by_phase_loads,
        phase_rates=np.array([phase.weight for phase in phases]) if phases else None,
        seen_on=_seen_on(trace, numbers),
        keeps=tuple(keeps.tolist()),
        unordered=unordered,
        real_time=real_time_share(whole),
        names=tuple(row.name for row in trace.thread_rows),
        use=with_mixed(use, trace, samples, lane),
        lives=tuple((row.start_ns, row.end_ns) for row in trace.thread_rows),
        counted=analysis.local,
        lasted_s=lasted_s(whole),
    )
    return TraceWorkload(found, analysis, crowded)


def thread_lanes(trace: Trace) -> Nodes:
    """(N,) lane of each thread of a trace: those of one lane follow one another."""
    rows = trace.thread_rows
    return lanes_of([(row.process, row.path) for row in rows], [(row.start_ns, row.end_ns) for row in rows])


def trace_pages(
    trace: Trace,
    threads: Sequence[int],
    borders: Sequence[int] = (),
    samples: "TraceSamples | None" = None,
) -> PageCounts:
    """Who uses which page of a trace or of a part of it, and who touched it first."""
    found = placed_pages(trace, threads, borders, samples)
    return found if trace.part else with_runtimes(found, trace, threads)  # counters are of the whole run


def _weighted_communication(trace: Trace, analysis: "Analysis") -> Floats:
    """(N, N) the sum over phases of communication times the phase's rate over the mean rate (as Eq. 3)."""
    from numaplan.analyzer import communication_by_phase

    rates = np.array([phase.weight for phase in analysis.phases])
    matrices = [part.matrix for part in communication_by_phase(trace, analysis)]
    weights = rates / (float(rates.mean()) or 1.0)
    answer: Floats = sum(
        (weight * matrix for weight, matrix in zip(weights, matrices, strict=True)),
        np.zeros_like(analysis.comm),
    )
    return answer


def _seen_on(trace: Trace, threads: Sequence[int]) -> tuple[int, ...]:
    """Node that most samples of each thread were taken on.

    Empty when some thread's is not known, there is one node only, or an emulator chose.
    """
    machine = trace.machine
    if len(machine.cpu_nodes) < 2 or trace.meta.get("backend") == "emulate":
        return ()
    node_of = machine.node_of_cpu
    found: dict[int, tuple[int, int]] = {}
    for thread, cpu, count in trace.rows(
        "SELECT thread, cpu, count(*) FROM samples WHERE thread >= 0 AND cpu >= 0 GROUP BY ALL ORDER BY ALL"
    ):
        if cpu in node_of and count > found.get(int(thread), (0, 0))[0]:
            found[int(thread)] = (int(count), node_of[cpu])
    return tuple(found[thread][1] for thread in threads) if all(t in found for t in threads) else ()


def crowded_time(trace: Trace) -> tuple[int, int]:
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
    parts = [(phase.loads, slice(phase.start, phase.end)) for phase in analysis.phases]
    phases = [_rest(made, line.per_thread[part], alone[part]) for made, part in parts]
    loads = _rest(analysis.loads, line.per_thread, alone)
    total, left = float(analysis.loads.sum()), float(loads.sum())
    note = ""
    if total > 0 and 1 - left / total >= WORTH_SAYING:
        note = f"{1 - left / total:.0%} of the load is the main thread's while it is alone: not balanced"
    return loads, np.array(phases) if phases else None, note


def _rest(loads: Floats, accesses: Floats, alone: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Floats:
    """(N,) loads less the share of each thread's accesses (S, N) in the slices alone."""
    made = accesses.sum(axis=0)
    answer: Floats = loads * (1 - accesses[alone].sum(axis=0) / np.where(made > 0, made, 1.0))
    return answer
