"""What a plan is made for, read from several traces: runs of one program, or a job's ranks recorded apart."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from numaplan.analyzer import LocalShares, PageCounts
from numaplan.common import UsageError
from numaplan.profiler import Trace

from .files import digest
from .from_trace import (
    TraceWorkload,
    read_trace,
    refuse_first_touches,
    shared_loads,
    thread_lanes,
    trace_pages,
)
from .joining import renumbered, together
from .lasted import lasted_s
from .messages import with_messages
from .one_job import check_one_job, membership
from .opening import TraceOpening
from .part import WHOLE, Part
from .program import other_program, program_facts
from .roles.mixing import with_mixed
from .use import merged_use, thread_use
from .workload import Workload

if TYPE_CHECKING:
    from numaplan.analyzer import Analysis, RunAgreement


MOST_ELSEWHERE = 4  # traces of other machines that are named
SAME = 0.75  # of what a thread uses most in a run, that it must use most in each for it to have a role


def workload_of_traces(
    paths: Sequence[Path],
    *,
    pages: bool = True,
    by_phase: bool = False,
    opening: TraceOpening | None = None,
    part: Part = WHOLE,
    larger: bool = False,
) -> Workload:
    """Of one trace or several; as `workload_of_trace`. opening: of the first, where it has begun.

    Runs are averaged where threads keep their roles from run to run; else the first one counts, and a note
    and `identity` say that a plan will not fit the next run. Memory is that of the first trace in which a
    process appears. Threads that use other memory in another run have no role, whatever one run shows; if
    most use the same, it needs no more to have one. larger: of a single one, also with larger inputs.
    """
    several = len(paths) > 1
    found = read_trace(
        paths[0],
        pages=pages,
        by_phase=by_phase and not several,
        opening=opening,
        part=part,
        larger=larger and not several,
    )
    return _with_more_runs(found, paths, part, pages=pages) if several else found.workload


def _with_more_runs(found: TraceWorkload, paths: Sequence[Path], part: Part, *, pages: bool) -> Workload:
    """The workload of the first trace with what the others add to it."""
    from numaplan.analyzer import (
        MessageCounter,
        TraceSamples,
        analyze_trace,
        merge_analyses,
        same_users,
        thread_roles,
    )

    first, analysis, crowded = found
    analyses, agreements, stats = [analysis], [], [first.pages] if first.pages else []
    processes = {process for process, _ in first.threads}
    keys = list(first.threads)
    lives = dict(zip(keys, first.lives, strict=True))
    kept = dict(zip(keys, first.keeps, strict=True))
    stays: dict[tuple[str, str], float] = {}
    sizes: list[PageCounts] = []
    names = dict(zip(keys, first.names, strict=True))
    uses = [(keys[:], first.use)] if first.use else []
    elsewhere: list[str] = []
    messages, longest = MessageCounter(), first.lasted_s
    with Trace.open(paths[0]) as trace, part.of(trace) as own_part:
        messages.add(own_part)
        jobs = [membership(str(paths[0]), processes, trace.meta)]
    for path in paths[1:]:
        with Trace.open(path) as whole, part.of(whole) as trace:
            refuse_first_touches(trace)
            samples = TraceSamples(trace)
            other = analyze_trace(trace, slice_ns=analysis.timeline.slice_ns, samples=samples)
            own = [(thread.process, thread.path) for thread in other.threads]
            jobs.append(membership(str(path), (process for process, _ in own), whole.meta))
            lane = thread_lanes(trace)
            use = thread_use(whole, trace, samples, other)
            uses.append((own, with_mixed(use, trace, samples, lane)))
            longest = max(longest, lasted_s(whole))
            roles = thread_roles(trace, samples, lane)
            for key, keeps in zip(own, roles.keeps.tolist(), strict=True):
                kept[key] = kept.get(key, True) and keeps
            names |= {(row.process, row.path): row.name for row in trace.thread_rows}
            elsewhere += _elsewhere(first, trace, path)
            messages.add(trace)
            agreement = _agreement(first, analysis, other, trace, path)
            analyses.append(other)
            agreements.append(agreement)
            keys += [key for key in own if key not in set(keys)]
            for row in trace.thread_rows:
                lives.setdefault((row.process, row.path), (row.start_ns, row.end_ns))
            if pages:
                numbers = [thread.thread for thread in other.threads]
                counts = trace_pages(trace, numbers)
                counts = renumbered(counts, [keys.index(key) for key in own])
                if not processes & {process for process, _ in own}:
                    stats.append(counts)
                elif first.pages is not None:
                    if _resized(first.pages, counts):
                        sizes.append(counts)
                    again = same_users(first.pages, counts, keys).tolist()
                    stays |= {
                        key: min(share, stays.get(key, 1.0))
                        for key, share in zip(keys, again, strict=True)
                        if share >= 0
                    }
            processes |= {process for process, _ in own}
    check_one_job(jobs, "plan the traces of one job, or of runs of it")
    most_stay = bool(stays) and float(np.median(list(stays.values()))) >= SAME
    kept |= {key: share >= SAME for key, share in stays.items() if most_stay or share < SAME}
    compared = [agreement for agreement in agreements if agreement is not None]
    identity = _identity(compared)
    sources = {"traces": [digest(path) for path in paths], **part.recorded()}
    notes = [f"run {number}: {one.sentence()}" for number, one in enumerate(agreements, 2) if one]
    notes += elsewhere[:MOST_ELSEWHERE]
    if len(elsewhere) > MOST_ELSEWHERE:
        notes.append(f"so are {len(elsewhere) - MOST_ELSEWHERE} more traces")
    if identity is not None and not identity["stable"]:
        keeps = tuple(kept[key] for key in first.threads)
        return replace(first, sources=sources, identity=identity, notes=(*notes, *first.notes), keeps=keeps)
    merged = merge_analyses(analyses)
    seen = [{thread.process for thread in one.threads} for one in analyses]
    threads = [(thread.process, thread.path) for thread in merged.threads]
    loads, by_phase_loads, note = shared_loads(merged, crowded if compared else (-1, -1))
    joined = replace(
        first,
        threads=threads,
        comm=merged.comm,
        loads=loads,
        sources=sources,
        pages=together(stats, len(merged.threads)) if stats else None,
        notes=(*part.notes(), *notes, *merged.notes),
        not_balanced=(note,) if note else (),
        phases=by_phase_loads,
        phase_rates=np.array([phase.weight for phase in merged.phases]) if merged.phases else None,
        seen_on=first.seen_on if len(merged.threads) == len(first.threads) else (),
        identity=identity,
        lives=tuple(lives[key] for key in threads),
        keeps=tuple(kept[key] for key in threads),
        names=tuple(names[key] for key in threads),
        use=merged_use(uses, threads, merged),
        apart=set().union(*seen) not in seen,
        sizes=tuple(sizes),
        counted=_counted(analyses) if compared else None,
        lasted_s=longest,
    )
    return with_messages(joined, messages.result())


def _counted(analyses: Sequence["Analysis"]) -> LocalShares | None:
    """The mean over runs of one program; None where one of them was not counted."""
    found = [analysis.local for analysis in analyses if analysis.local is not None]
    if len(found) < len(analyses):
        return None
    memory = [one.memory for one in found]
    return LocalShares(
        float(np.mean([one.accesses for one in found])), float(np.mean(memory)) if min(memory) >= 0 else -1.0
    )


def _elsewhere(first: Workload, trace: Trace, path: Path) -> list[str]:
    """What to say of a trace of another machine than the first one's."""
    there, here = trace.machine, first.machine
    if here is None or there.fingerprint == here.fingerprint:
        return []
    return [
        f"{path}: recorded on another machine ({there.name or 'unnamed'}) than the first"
        f" ({here.name or 'unnamed'}), which the plan is for unless --machine names one"
    ]


def _resized(one: PageCounts, other: PageCounts) -> bool:
    """Whether some region has another size in another run."""
    size = {replace(key, bytes=0): key.bytes for key in one.regions}
    return any(size.get(replace(key, bytes=0), key.bytes) != key.bytes for key in other.regions)


def _agreement(
    first: Workload, analysis: "Analysis", other: "Analysis", trace: Trace, path: Path
) -> "RunAgreement | None":
    """How the run agrees with the first; None for other processes of a job."""
    from numaplan.analyzer import compare_runs

    shared = set(first.threads) & {(thread.process, thread.path) for thread in other.threads}
    if shared and other_program(program_facts(first), trace.meta):
        raise UsageError(
            f"{path}: of another program, or another build of it",
            "plan each program by itself, the second with --beside the first one's plan",
        )
    if len(shared) == 1 and (len(first.threads) > 1 or len(other.threads) > 1):
        raise UsageError(
            f"{path}: one thread in common with the first", "give runs of one program, run in the same way"
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
