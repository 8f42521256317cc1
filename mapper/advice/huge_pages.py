"""Huge pages where they hurt: one made of what threads of several nodes touch is on one node."""

from collections.abc import Sequence

import msgspec
import numpy as np

from numaplan.analyzer import Advice, PageCounts, RegionUse

from ..planning.cost.unplanned import alone
from ..threads.problem import Nodes
from .situation import Situation, by_place, made_at, short_name

PAGE, HUGE = 4096, 2 << 20
KINDS = ("heap", "mmap")  # anonymous memory
CHANGE = (
    "start each thread's part at a multiple of 2 MiB, or madvise(block, bytes, MADV_NOHUGEPAGE) "
    "before its first write"
)


def split(situation: Situation) -> list[Advice]:
    """For each region, or all blocks of one place in the code, where the kernel makes huge pages of all that
    it can (`always`, when the trace was recorded) and small ones would be local."""
    if situation.trace.meta.get("huge_pages") != "always":
        return []
    pages = situation.task.pages.recorded
    if pages.toucher is None or pages.first_ns is None:
        return []
    groups = by_place(situation.regions, lambda use: use.samples if use.kind in KINDS else 0)
    found = [_of_group(situation, group) for group in groups]
    return [one for one in found if one is not None]


def _of_group(situation: Situation, group: Sequence[RegionUse]) -> Advice | None:
    task, pages = situation.task, situation.task.pages.recorded
    starts = {row.region: row.start_addr for row in situation.trace.region_rows}
    huge = huge_numbers(pages, {use.region: starts[use.region] for use in group})
    shared = _shared(situation, huge)
    if not shared:
        return None
    before = alone(task.with_misses(touched_as_huge(pages, huge)))
    if not situation.gain(situation.usual, before):
        return None
    called = f"{len(group)} blocks of " * (len(group) > 1) + short_name(group[0])
    return situation.advice(
        "huge-pages",
        situation.usual,
        action=f"keep each huge page of {called} to one node's threads",
        evidence=f"{shared} of {len(np.unique(huge[huge >= 0]))} stretches of 2 MiB are touched first by "
        "threads of several nodes, and the kernel there makes huge pages of all it can (gain: with small "
        f"pages, but for what table walks cost){made_at(group[:1])}",
        change=CHANGE,
        usual=before,
    )


def huge_numbers(pages: PageCounts, starts: dict[int, int]) -> Nodes:
    """(rows,) a number for the huge page that each row's page may become part of, -1: of none.

    starts: address of each region that is asked for. One that is not whole in its region is none.
    """
    answer = np.full(len(pages.region), -1, np.int64)
    for region, start in starts.items():
        rows = np.flatnonzero(pages.region == region)
        number = (start // PAGE * PAGE + pages.page[rows] * PAGE) // HUGE
        end = start + pages.regions[region].bytes
        whole = (number * HUGE >= start) & ((number + 1) * HUGE <= end)
        answer[rows[whole]] = number[whole]
    return answer


def touched_as_huge(pages: PageCounts, huge: Nodes) -> PageCounts:
    """The same where who touches anything of a huge page first touches all of it."""
    assert pages.toucher is not None and pages.first_ns is not None
    rows = np.flatnonzero((huge >= 0) & (pages.toucher >= 0))
    if not len(rows):
        return pages
    order = rows[np.lexsort((pages.first_ns[rows], huge[rows]))]
    numbers, first = np.unique(huge[order], return_index=True)
    toucher = pages.toucher.copy()
    toucher[rows] = pages.toucher[order[first]][np.searchsorted(numbers, huge[rows])]
    return msgspec.structs.replace(pages, toucher=toucher)


def _shared(situation: Situation, huge: Nodes) -> int:
    """How many huge pages threads of several nodes would touch first, small page by small page."""
    task, pages = situation.task, situation.task.pages.recorded
    assert pages.toucher is not None
    rows = np.flatnonzero((huge >= 0) & (pages.toucher >= 0))
    node = task.rows[situation.usual.places[pages.toucher[rows]]]
    pairs = np.unique(np.stack([huge[rows], node]), axis=1)
    return int((np.unique(pairs[0], return_counts=True)[1] > 1).sum())
