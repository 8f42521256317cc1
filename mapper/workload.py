"""What a plan is made for: a program's threads, their communication and loads, and who touched which page.

Read from a trace (by the analyzer) or from comm.csv and loads.csv.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError
from numaplan.mapper.matrix_file import read_comm, read_loads
from numaplan.mapper.page_runs import PAGE
from numaplan.mapper.pages import PageStats
from numaplan.mapper.plan import RegionKey
from numaplan.mapper.problem import Floats
from numaplan.profiler import Machine, Trace

MOST_BORDERS = 16  # between phases; beyond that memory moved along would hardly ever be at rest
PLACED_KINDS = ("static", "heap", "mmap")  # stacks and tls follow their thread, the rest is not the program's


@dataclass(frozen=True)
class Workload:
    """threads: (process, creation path) of each row of comm (N, N) and loads (N,); sources: their digests;
    phases: (P, N) loads by phase of the run."""

    threads: Sequence[tuple[str, str]]
    comm: Floats
    loads: Floats
    sources: dict[str, str]
    argv: tuple[str, ...] = ()
    build_id: str = ""
    pages: PageStats | None = None
    machine: Machine | None = None
    notes: tuple[str, ...] = ()
    phases: Floats | None = None


def workload_of_files(comm: Path, loads: Path | None) -> Workload:
    """Of a matrix and a load vector; thread i is the i-th that the main thread made (OpenMP's numbering)."""
    matrix, note = read_comm(comm)
    vector = read_loads(loads) if loads else np.ones(len(matrix))
    if len(vector) != len(matrix):
        raise UsageError(
            f"{loads}: {len(vector)} loads for {len(matrix)} threads in {comm}", "give one number a thread"
        )
    sources = {"comm": _digest(comm), **({"loads": _digest(loads)} if loads else {})}
    return Workload(
        threads=[("p0", f"0.{i}" if i else "0") for i in range(len(matrix))],
        comm=matrix,
        loads=vector,
        sources=sources,
        notes=(note,) if note else (),
    )


def workload_of_trace(path: Path, *, pages: bool = True) -> Workload:
    """Of a trace; raises UsageError when it cannot be read or shows no thread."""
    from numaplan.analyzer import analyze_trace

    with Trace.open(path) as trace:
        analysis = analyze_trace(trace)
        threads = [(thread.process, thread.path) for thread in analysis.threads]
        if not threads:
            raise UsageError(f"{path}: no thread in it", "record the program again")
        return Workload(
            threads=threads,
            comm=analysis.comm,
            loads=analysis.loads,
            sources={"trace": _digest(path)},
            argv=_argv(trace),
            build_id=trace.meta.get("build_id", ""),
            pages=read_page_stats(trace, [thread.thread for thread in analysis.threads]) if pages else None,
            machine=trace.machine,
            notes=tuple(analysis.notes),
            phases=np.array([phase.loads for phase in analysis.phases]) if analysis.phases else None,
        )


def read_page_stats(trace: Trace, threads: Sequence[int], borders: Sequence[int] = ()) -> PageStats:
    """Accesses by region, page, thread and phase; threads: the trace's thread of each row of the matrix.

    borders: times in ns at which a new phase begins. Counted from when the first thread beside the main one
    starts: initialisation by one thread says nothing of who will use the memory, only of where the kernel
    puts it by default; it stands apart (`before`).
    """
    phase = " + ".join(
        ["0", *(f"(s.time_ns >= {int(border)})::INTEGER" for border in borders[:MOST_BORDERS])]
    )
    found = trace.arrays(
        f"WITH seen AS (SELECT s.region, (s.addr - r.start_addr) // {PAGE} page, s.thread, s.is_write,"
        f" s.time_ns, {phase} phase, s.time_ns < ({_STARTED}) early"
        f" FROM samples s JOIN regions r USING (region) WHERE s.thread >= 0 AND {_PLACEABLE}),"
        " touched AS (SELECT region, page, arg_min(thread, (time_ns, thread)) toucher FROM seen GROUP BY ALL)"
        " SELECT region::BIGINT region, page::BIGINT page, thread::BIGINT thread, phase::BIGINT phase,"
        " (count(*) FILTER (NOT early))::BIGINT accesses, (count(*) FILTER (early))::BIGINT before,"
        " (count(*) FILTER (is_write AND NOT early))::BIGINT writes, any_value(toucher)::BIGINT toucher"
        " FROM seen JOIN touched USING (region, page) GROUP BY region, page, thread, phase"
        " ORDER BY region, page, thread, phase"
    )
    keys = _region_keys(trace)
    numbers, region = np.unique(found["region"], return_inverse=True)
    row_of = np.full(max(threads, default=-1) + 2, -1)
    row_of[threads] = np.arange(len(threads))
    thread, toucher = (row_of[np.minimum(found[name], len(row_of) - 1)] for name in ("thread", "toucher"))
    return PageStats(
        regions=[keys[number] for number in numbers.tolist()],
        region=region,
        page=found["page"],
        thread=thread,
        accesses=found["accesses"],
        writes=found["writes"],
        toucher=toucher,
        before=found["before"],
        phase=found["phase"] if borders else None,
        elsewhere=_elsewhere(trace, row_of, len(threads)),
        period=_period(trace),
    )


_STARTED = "SELECT coalesce(min(start_ns), 0) FROM threads WHERE path <> '0'"
_KINDS = ", ".join(f"'{kind}'" for kind in PLACED_KINDS)
_PLACEABLE = f"r.kind IN ({_KINDS}) AND r.bytes >= {PAGE} AND s.addr >= r.start_addr"


def _elsewhere(trace: Trace, row_of: NDArray[np.int64], threads: int) -> Floats:
    """(N, N) accesses of each thread to pages that no plan places, by the thread seen on them first."""
    found = trace.arrays(
        f"WITH seen AS (SELECT t.process, s.addr // {PAGE} page, s.thread, count(*) n, min(s.time_ns) first"
        " FROM samples s JOIN threads t USING (thread) LEFT JOIN regions r USING (region)"
        f" WHERE NOT coalesce({_PLACEABLE}, false) AND s.addr <> 0 AND coalesce(r.kind, '') <> 'text'"
        " GROUP BY ALL),"
        " touched AS (SELECT process, page, arg_min(thread, (first, thread)) toucher FROM seen GROUP BY ALL)"
        " SELECT thread::BIGINT thread, toucher::BIGINT toucher, sum(n)::BIGINT n"
        " FROM seen JOIN touched USING (process, page) GROUP BY thread, toucher ORDER BY thread, toucher"
    )
    thread, toucher = (row_of[np.minimum(found[name], len(row_of) - 1)] for name in ("thread", "toucher"))
    known = (thread >= 0) & (toucher >= 0)
    counts = np.zeros((threads, threads))
    np.add.at(counts, (thread[known], toucher[known]), found["n"][known])
    return counts


def _period(trace: Trace) -> int:
    text = trace.meta.get("period", "")
    return max(1, int(text)) if text.isdigit() else 1


def _region_keys(trace: Trace) -> dict[int, RegionKey]:
    rows = trace.rows(
        "SELECT r.region, r.kind, r.name, r.bytes, r.build_id, r.process, coalesce(t.path, ''), r.sequence"
        " FROM regions r LEFT JOIN threads t ON r.thread = t.thread"
    )
    return {
        number: RegionKey(
            kind=kind,
            name=name,
            bytes=size,
            build_id=build_id,
            process=process,
            thread=path,
            sequence=sequence,
        )
        for number, kind, name, size, build_id, process, path, sequence in rows
    }


def _argv(trace: Trace) -> tuple[str, ...]:
    try:
        words = json.loads(trace.meta.get("argv", "[]"))
    except ValueError:
        return ()
    return tuple(map(str, words)) if isinstance(words, list) else ()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
