"""Who touches which page of each region of a trace, and who touched it first."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from numaplan.mapper.page_runs import PAGE
from numaplan.mapper.pages import PageStats
from numaplan.mapper.plan import RegionKey
from numaplan.mapper.problem import Floats
from numaplan.profiler import Trace

MOST_BORDERS = 16  # between phases; beyond that memory moved along would hardly ever be at rest
PLACED_KINDS = ("static", "heap", "mmap")  # stacks and tls follow their thread, the rest is not the program's
_STARTED = "SELECT coalesce(min(start_ns), 0) FROM threads WHERE path <> '0'"
_KINDS = ", ".join(f"'{kind}'" for kind in PLACED_KINDS)
_PLACEABLE = f"r.kind IN ({_KINDS}) AND r.bytes >= {PAGE} AND s.addr >= r.start_addr"


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


def _elsewhere(trace: Trace, row_of: NDArray[np.int64], threads: int) -> Floats:
    """(N, N) accesses of each thread to pages that no plan places, by the thread seen on them first."""
    found = trace.arrays(
        "WITH seen AS ("
        f"SELECT t.process, s.addr // {PAGE} page, s.thread, count(*) n,"
        # Constants of the program and its libraries come with the file, before any thread is made.
        " min(CASE WHEN r.kind = 'text' THEN 0 ELSE s.time_ns END) first"
        " FROM samples s JOIN threads t USING (thread) LEFT JOIN regions r USING (region)"
        f" WHERE NOT coalesce({_PLACEABLE}, false) AND s.addr <> 0 GROUP BY ALL),"
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
