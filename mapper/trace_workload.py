"""What a plan is made for, read from one trace or several."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from numaplan.common import UsageError
from numaplan.mapper.page_stats import read_page_stats
from numaplan.mapper.pages import PageStats
from numaplan.mapper.problem import Floats
from numaplan.mapper.reading import Opening, digest
from numaplan.mapper.start_up import crowded_time, shared_loads
from numaplan.mapper.workload import Workload
from numaplan.profiler import Trace

if TYPE_CHECKING:
    from numaplan.analyzer import Analysis, RunAgreement


def workload_of_trace(path: Path, *, pages: bool = True, by_phase: bool = False) -> Workload:
    """Of a trace; raises UsageError when it cannot be read or shows no thread.

    by_phase: communication weighted by the rate of accesses in the phase that it happens in, for the
    objective `phased` (one more pass over the samples).
    """
    return workload_of_traces([path], pages=pages, by_phase=by_phase)


def workload_of_traces(
    paths: Sequence[Path], *, pages: bool = True, by_phase: bool = False, opening: Opening | None = None
) -> Workload:
    """Of several runs of one program, or of a job's ranks recorded apart; as `workload_of_trace`.

    Runs are averaged where threads keep their roles from run to run; else the first one counts, and a note
    and `identity` say that a plan will not fit the next run. Memory is that of the first trace in which a
    process appears. opening: of the first trace, where it has begun.
    """
    from numaplan.analyzer import TraceSamples, analyze_trace

    opening = opening or Opening(paths[0])
    with opening.trace() as trace:
        samples = TraceSamples(trace)
        numbers = [row.thread for row in trace.thread_rows]
        stats: list[PageStats] = []

        def count_pages(borders: Sequence[int]) -> None:
            stats.append(read_page_stats(trace, numbers, borders, samples))

        analysis = analyze_trace(trace, samples=samples, meanwhile=count_pages if pages else None)
        phases, comm = list(analysis.phases), analysis.comm
        if by_phase and len(paths) == 1 and len(phases) > 1:
            comm = _weighted_communication(trace, analysis)
        crowded = crowded_time(trace)
        loads, by_phase_loads, said = shared_loads(analysis, crowded)
        found = Workload(
            threads=[(thread.process, thread.path) for thread in analysis.threads],
            comm=comm,
            loads=loads,
            sources={"trace": opening.digest.result()},
            argv=tuple(trace.argv),
            build_id=trace.meta.get("build_id", ""),
            pages=stats[0] if pages else None,
            machine=trace.machine,
            notes=(*analysis.notes, *([said] if said else [])),
            phases=by_phase_loads,
            phase_rates=np.array([phase.weight for phase in phases]) if phases else None,
            seen_on=_seen_on(trace, numbers),
        )
    return found if len(paths) == 1 else _with_more_runs(found, analysis, paths, crowded, pages=pages)


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


def _with_more_runs(
    first: Workload, analysis: "Analysis", paths: Sequence[Path], crowded: tuple[int, int], *, pages: bool
) -> Workload:
    """The workload of the first trace with what the others add to it; crowded: of the first one."""
    from numaplan.analyzer import analyze_trace, merge_analyses

    analyses, agreements, stats = [analysis], [], [first.pages] if first.pages else []
    processes = {process for process, _ in first.threads}
    keys = list(first.threads)
    for path in paths[1:]:
        with Trace.open(path) as trace:
            other = analyze_trace(trace, slice_ns=analysis.timeline.slice_ns)
            own = [(thread.process, thread.path) for thread in other.threads]
            agreement = _agreement(first, analysis, other, trace, path)
            analyses.append(other)
            agreements.append(agreement)
            keys += [key for key in own if key not in set(keys)]
            if pages and not processes & {process for process, _ in own}:
                numbers = [thread.thread for thread in other.threads]
                stats.append(_renumbered(read_page_stats(trace, numbers), [keys.index(key) for key in own]))
            processes |= {process for process, _ in own}
    compared = [agreement for agreement in agreements if agreement is not None]
    identity = _identity(compared)
    sources = {"traces": [digest(path) for path in paths]}
    notes = [f"run {number}: {found.sentence()}" for number, found in enumerate(agreements, 2) if found]
    if identity is not None and not identity["stable"]:
        return replace(first, sources=sources, identity=identity, notes=(*notes, *first.notes))
    merged = merge_analyses(analyses)
    loads, by_phase_loads, said = shared_loads(merged, crowded if compared else (-1, -1))
    return replace(
        first,
        threads=[(thread.process, thread.path) for thread in merged.threads],
        comm=merged.comm,
        loads=loads,
        sources=sources,
        pages=_together(stats, len(merged.threads)) if stats else None,
        notes=(*notes, *merged.notes, *([said] if said else [])),
        phases=by_phase_loads,
        phase_rates=np.array([phase.weight for phase in merged.phases]) if merged.phases else None,
        seen_on=first.seen_on if len(merged.threads) == len(first.threads) else (),
        identity=identity,
    )


def _agreement(
    first: Workload, analysis: "Analysis", other: "Analysis", trace: Trace, path: Path
) -> "RunAgreement | None":
    """How the run agrees with the first; None for other processes of a job."""
    from numaplan.analyzer import compare_runs

    shared = set(first.threads) & {(thread.process, thread.path) for thread in other.threads}
    build = trace.meta.get("build_id", "")
    if shared and first.build_id and build and build != first.build_id:
        raise UsageError(
            f"{path}: of another program, or another build of it",
            "plan each program by itself, the second with --beside the first one's plan",
        )
    if len(shared) == 1 and (len(first.threads) > 1 or len(other.threads) > 1):
        raise UsageError(
            f"{path}: one thread in common with the first", "give runs of one program, run alike"
        )
    return compare_runs(analysis, other) if len(shared) > 1 else None


def _identity(agreements: "Sequence[RunAgreement]") -> dict[str, Any] | None:
    """What a plan says of the runs it was made from; of the worst pair. None where none were compared."""
    if not agreements:
        return None
    worst = min(agreements, key=lambda found: (found.verdict != "roles", found.correlation))
    return {
        "stable": worst.verdict in ("holds", "flat"),
        "verdict": worst.verdict,
        "correlation": round(worst.correlation, 4),
        "matched": round(worst.matched, 4),
        "runs": len(agreements) + 1,
    }


def _renumbered(stats: PageStats, rows: Sequence[int]) -> PageStats:
    """The same with thread i as thread rows[i]."""
    index = np.append(np.asarray(rows, dtype=np.int64), -1)  # the last is that of -1
    size = max(rows, default=-1) + 1
    elsewhere = np.zeros((size, size))
    if stats.elsewhere is not None:
        elsewhere[np.ix_(rows, rows)] = stats.elsewhere
    toucher = None if stats.toucher is None else index[stats.toucher]
    return replace(stats, thread=index[stats.thread], toucher=toucher, elsewhere=elsewhere)


def _together(stats: Sequence[PageStats], threads: int) -> PageStats:
    """Memory of several recordings of other processes side by side; phases are those of a single one."""
    elsewhere = np.zeros((threads, threads))
    for part in stats:
        if part.elsewhere is not None:
            size = len(part.elsewhere)
            elsewhere[:size, :size] += part.elsewhere
    if len(stats) == 1:
        return replace(stats[0], elsewhere=elsewhere)
    shifts = np.cumsum([0, *(len(part.regions) for part in stats)])

    def joined(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in stats])

    return PageStats(
        regions=[key for part in stats for key in part.regions],
        region=np.concatenate([part.region + shift for part, shift in zip(stats, shifts, strict=False)]),
        page=joined("page"),
        thread=joined("thread"),
        accesses=joined("accesses"),
        writes=joined("writes"),
        toucher=joined("toucher"),
        before=joined("before"),
        elsewhere=elsewhere,
        period=stats[0].period,
    )
