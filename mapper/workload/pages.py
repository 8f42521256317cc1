"""Who touches which page of a trace, as the planner asks for it, and who touched it first.

A page written once over by the main thread has half a sample at period 1000. Seen alone, many of the pages
would count as first touched by the threads that use them later, and today's placement as far better than it
is. Where one thread went evenly over a stretch of a region, the pages in between are its own too.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from numaplan.analyzer import BY_PAIRS, PageCounts, counted_by_pairs, pages_by_pairs
from numaplan.profiler import RegionKey, Trace

if TYPE_CHECKING:
    from numaplan.analyzer import TraceSamples

MOST_BORDERS = 16  # between phases; beyond that memory moved along would hardly ever be at rest
PLACED_KINDS = ("static", "heap", "mmap")  # stacks and tls follow their thread, the rest is not the program's
SMALL, STACK = "small", "stack"
BY_ROW = (
    *("region", "page", "thread", "accesses", "writes", "toucher", "before", "phase", "first_ns"),
    *("missed", "missed_before"),
)
EVEN = 0.7  # of the pages that as many samples show when they fall evenly

Ints = NDArray[np.int64]
Counts = NDArray[np.int64] | NDArray[np.float64]


def placed_pages(
    trace: Trace,
    threads: Sequence[int],
    borders: Sequence[int] = (),
    samples: "TraceSamples | None" = None,
) -> PageCounts:
    """Accesses by region, page, thread and phase; threads: the trace's thread of each row of the matrix.

    borders: times in ns at which a new phase begins. Counted from when the first thread beside the main one
    starts: initialisation by one thread says nothing of who will use the memory, only of where the kernel
    puts it by default; it stands apart (`before`). Of a part of a trace, who touched a page first is asked of
    all that came before, too. samples: those of the trace, where the caller has them.
    """
    from numaplan.analyzer import TraceSamples, count_pages

    teams = team_starts(trace)[1:]  # the first one is where counting begins
    teams = teams if len(teams) <= MOST_BORDERS else []
    others = [border for border in borders if border not in teams]
    borders = sorted([*teams, *others[: MOST_BORDERS - len(teams)]])
    kinds = (*PLACED_KINDS, SMALL, STACK)
    samples = samples or TraceSamples(trace)
    found = _placed(trace, count_pages(trace, samples, kinds, borders))
    assert found.toucher is not None and found.elsewhere is not None
    toucher = found.toucher
    if found.period > 1:  # else every access has been seen
        begun = found
        if trace.part and trace.part[0] > 0:  # the same rows, with what was before the part
            with trace.between(0, trace.part[1]) as until:
                every = TraceSamples(until, samples.cache_ratio)
                begun = _placed(trace, count_pages(until, every, kinds, borders, trace.part[0]))
        assert begun.before is not None
        toucher = first_touchers(begun.region, begun.page, begun.before, toucher)
    row_of = np.full(len(found.elsewhere) + 1, -1)
    row_of[threads] = np.arange(len(threads))
    own = np.ix_(threads, threads)
    return replace(
        found,
        thread=row_of[found.thread],
        toucher=row_of[toucher],
        phase=found.phase if borders else None,
        teams=np.searchsorted(teams, [-1, *borders], side="right") if teams else None,
        **{name: None if (pairs := getattr(found, name)) is None else pairs[own] for name in BY_PAIRS},
    )


def _placed(trace: Trace, counted: PageCounts) -> PageCounts:
    """The same with no pages but those that a plan may place."""
    owner = np.full(len(counted.regions), -1)
    for row in trace.region_rows:
        owner[row.region] = row.thread if row.kind == STACK else -1
    return mappings_joined(small_apart(stacks_apart(counted, owner, _first_threads(trace))))


def with_runtimes(counts: PageCounts, trace: Trace, threads: Sequence[int]) -> PageCounts:
    """The same with what the loader and thread runtimes access, which is counted by thread, not by page.

    They are in `elsewhere`, to memory that their thread touched first: most are the loader's, of which the
    first thread makes its own pages. threads: as for `placed_pages`. Nothing changes where accesses were
    sampled: there the samples stand for all.
    """
    if not counts.exact or counts.elsewhere is None:
        return counts
    from numaplan.analyzer import counter_totals

    totals = counter_totals(trace)
    if "loads" not in totals or "stores" not in totals:
        return counts
    known = counts.thread >= 0
    by_page = np.bincount(counts.thread[known], counts.all_accesses[known], len(threads))
    made = (np.maximum(totals["loads"], 0.0) + np.maximum(totals["stores"], 0.0))[threads]
    beyond = np.maximum(made - by_page - counts.elsewhere.sum(axis=1), 0.0)
    return replace(counts, elsewhere=counts.elsewhere + np.diag(beyond))


def mappings_joined(counts: PageCounts) -> PageCounts:
    """The same with one region for each mapping, be it seen in several processes.

    Those that were forked after it was made have it, too, and it is placed once for all of them. Its pages
    are theirs who touched them first of all.
    """
    first: dict[RegionKey, int] = {}
    number = np.arange(len(counts.regions))
    for one, key in enumerate(counts.regions):
        if key.kind == "mmap":
            number[one] = first.setdefault(key, one)
    region = number[counts.region]
    if (region == counts.region).all():
        return counts
    phase = np.zeros(len(region), np.int64) if counts.phase is None else counts.phase
    order = np.lexsort((phase, counts.thread, counts.page, region))
    rows = {name: None if (values := getattr(counts, name)) is None else values[order] for name in BY_ROW}
    found = replace(counts, **{**rows, "region": region[order]})
    if found.toucher is not None and found.first_ns is not None:
        pages = found.page_number
        sooner = np.lexsort((found.first_ns, pages))
        begin = sooner[np.unique(pages[sooner], return_index=True)[1]]
        found = replace(found, toucher=found.toucher[begin][pages], first_ns=found.first_ns[begin][pages])
    if found.lives is None:
        return found
    lives = found.lives.copy()
    for one, other in enumerate(number.tolist()):
        begins, ends = lives[[one, other]].T
        lives[other] = begins.min(), -1 if (ends < 0).any() else ends.max()
    return replace(found, lives=lives)


def small_apart(counts: PageCounts) -> PageCounts:
    """The same without the pages of small blocks: what these have is in `elsewhere` and, of that, in `small`.

    Where accesses are sampled, the first sample of a page shows who touched it first, and would be local by
    that: in `small` the others stand for all.
    """
    assert counts.toucher is not None and counts.elsewhere is not None
    of_small = np.array([key.kind == SMALL for key in counts.regions], bool)[counts.region]
    toucher = counts.toucher[of_small]
    rest, small = _apart(counts, of_small)
    if counts.period > 1 and small.any():
        pages = np.unique(counts.page_number[of_small], return_index=True)[1]
        seen = np.maximum(small - np.diag(np.bincount(toucher[pages], minlength=len(small))), 0.0)
        small = seen * (small.sum() / seen.sum()) if seen.any() else small
    return replace(rest, small=small)


def stacks_apart(counts: PageCounts, owner: Ints, first: Ints) -> PageCounts:
    """The same without the pages of stacks: what these have is in `elsewhere`.

    The top of a stack, which its thread uses most, was first touched by who made the thread. A plan moves it
    to the thread's node: `restacked`. A forked process has a copy of its own as soon as it writes to a stack
    that it was born with. owner: (regions,) thread whose stack each is, -1: none; first: (N,) the first
    thread of each thread's process.
    """
    assert counts.toucher is not None
    of = owner[counts.region]
    of_stack = of >= 0
    forked = of_stack & (first[counts.thread] != first[of])
    of = np.where(forked, first[counts.thread], of)
    own = replace(counts, toucher=np.where(forked, first[counts.thread], counts.toucher))
    rest, touched = _apart(own, of_stack)
    restacked = -touched
    np.add.at(restacked, (counts.thread[of_stack], of[of_stack]), counts.all_accesses[of_stack])
    return replace(rest, restacked=restacked)


def _first_threads(trace: Trace) -> Ints:
    """(N,) the first thread of each thread's process; of one that has none, itself."""
    rows = trace.thread_rows
    first = {row.process: row.thread for row in rows if row.path == "0"}
    answer = np.arange(1 + max((row.thread for row in rows), default=-1))
    for row in rows:
        answer[row.thread] = first.get(row.process, row.thread)
    return answer


def _apart(counts: PageCounts, chosen: NDArray[np.bool_]) -> tuple[PageCounts, NDArray[np.float64]]:
    """The same with the chosen rows in `elsewhere`; and what they have of that, (N, N)."""
    assert counts.toucher is not None and counts.elsewhere is not None
    pairs, count = (counts.thread[chosen], counts.toucher[chosen]), len(counts.elsewhere)
    accesses, missed = counts.all_accesses[chosen], counts.elsewhere_missed
    made = counted_by_pairs(*pairs, accesses, count)
    if missed is not None and counts.missed is not None and counts.missed_before is not None:
        missed = missed + counted_by_pairs(*pairs, (counts.missed + counts.missed_before)[chosen], count)
    used, shared = pages_by_pairs(counts.page_number[chosen], *pairs, accesses, count)
    rest = {name: None if (rows := getattr(counts, name)) is None else rows[~chosen] for name in BY_ROW}
    apart = replace(
        counts,
        **rest,
        elsewhere=counts.elsewhere + made,
        elsewhere_missed=missed,
        elsewhere_pages=_sum(counts.elsewhere_pages, used),
        elsewhere_shared=_sum(counts.elsewhere_shared, shared),
    )
    return apart, made


def _sum(known: NDArray[np.float64] | None, more: NDArray[np.float64]) -> NDArray[np.float64]:
    return more if known is None else known + more


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


def first_touchers(region: Ints, page: Ints, before: Counts, toucher: Ints) -> Ints:
    """(rows,) the thread that touched each row's page first, as far as can be told.

    Rows in order of region and page; before: accesses from before the threads start; toucher: the thread seen
    first on the page.
    """
    answer = toucher.copy()
    borders = np.flatnonzero(np.diff(region, prepend=-1, append=-1))
    early = np.add.reduceat(before, borders[:-1]) if len(region) else before
    for place in np.flatnonzero(early).tolist():
        rows = slice(borders[place], borders[place + 1])
        _fill(page[rows], before[rows], answer[rows])
    return answer


def _fill(page: Ints, before: Counts, toucher: Ints) -> None:
    """The same in one region (in place)."""
    seen = before > 0
    known, at = np.unique(page[seen], return_index=True)
    span = int(known[-1] - known[0]) + 1
    rate = float(before.sum()) / span
    if len(known) < 2 or len(known) < EVEN * span * -np.expm1(-rate):
        return
    gap = int(1 / rate) if rate < 1 else 0  # as far as from one sample to the next it went on at both ends
    inside = (page >= known[0] - gap) & (page <= known[-1] + gap) & ~np.isin(page, known)
    nearest = np.clip(np.searchsorted(known, page[inside]) - 1, 0, len(known) - 1)
    toucher[inside] = toucher[seen][at][nearest]
