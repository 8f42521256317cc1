"""Who touches which page of each region of a trace, and who touched it first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from numaplan.mapper.first_touch import first_touchers
from numaplan.mapper.pages import PageStats
from numaplan.mapper.plan import RegionKey
from numaplan.profiler import Trace

if TYPE_CHECKING:
    from numaplan.analyzer import TraceSamples

MOST_BORDERS = 16  # between phases; beyond that memory moved along would hardly ever be at rest
PLACED_KINDS = ("static", "heap", "mmap")  # stacks and tls follow their thread, the rest is not the program's


def read_page_stats(
    trace: Trace, threads: Sequence[int], borders: Sequence[int] = (), samples: "TraceSamples | None" = None
) -> PageStats:
    """Accesses by region, page, thread and phase; threads: the trace's thread of each row of the matrix.

    borders: times in ns at which a new phase begins. Counted from when the first thread beside the main one
    starts: initialisation by one thread says nothing of who will use the memory, only of where the kernel
    puts it by default; it stands apart (`before`). samples: those of the trace, where the caller has them.
    """
    from numaplan.analyzer import TraceSamples, count_pages

    teams = team_starts(trace)[1:]  # the first one is where counting begins
    teams = teams if len(teams) <= MOST_BORDERS else []
    others = [border for border in borders if border not in teams]
    borders = sorted([*teams, *others[: MOST_BORDERS - len(teams)]])
    samples = samples or TraceSamples(trace)
    found = count_pages(trace, samples, PLACED_KINDS, borders)
    period, touchers = max(1, samples.period), found.toucher
    if period > 1:  # else every access has been seen
        touchers = first_touchers(found.region, found.page, found.before, touchers)
    keys = _region_keys(trace)
    numbers = np.flatnonzero(np.bincount(found.region)) if len(found.region) else found.region
    row_of = np.full(len(found.elsewhere) + 1, -1)
    row_of[threads] = np.arange(len(threads))
    chosen = np.ix_(threads, threads)
    return PageStats(
        regions=[keys[number] for number in numbers.tolist()],
        region=np.searchsorted(numbers, found.region),
        page=found.page,
        thread=row_of[found.thread],
        accesses=found.accesses,
        writes=found.writes,
        toucher=row_of[touchers],
        before=found.before,
        phase=found.phase if borders else None,
        teams=np.searchsorted(teams, [-1, *borders], side="right") if teams else None,
        elsewhere=found.elsewhere[chosen],
        period=period,
    )


def team_starts(trace: Trace) -> list[int]:
    """Times in ns at which a program that was alone makes a thread: then the launcher marks its memory."""
    starts: list[int] = []
    free = 0  # from when on no thread beside the main one lives
    for row in sorted(trace.thread_rows, key=lambda row: row.start_ns):
        if row.path == "0":
            continue
        if free >= 0 and row.start_ns >= free:
            starts.append(row.start_ns)
        free = -1 if row.end_ns < 0 or free < 0 else max(free, row.end_ns)
    return starts


def _region_keys(trace: Trace) -> dict[int, RegionKey]:
    path_of = {row.thread: row.path for row in trace.thread_rows}
    return {
        row.region: RegionKey(
            kind=row.kind,
            name=row.name,
            bytes=row.bytes,
            build_id=row.build_id,
            process=row.process,
            thread=path_of.get(row.thread, ""),
            sequence=row.sequence,
        )
        for row in trace.region_rows
    }
