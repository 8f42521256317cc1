"""Threads that belong together: which, in what memory they meet, and when."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from .analyzed import Analysis
from .memory.page_counts import PageCounts
from .memory.regions import RegionUse

STRONG = 0.5  # share of a thread's strongest partner from which another one counts as close
MOSTLY = 0.5  # share of a group's shared accesses or events that is worth naming a region, or a time
DENSER = 1.5  # times as many events as the rest of the run has, from which a time is named


def close_groups(analysis: Analysis) -> list[list[int]]:
    """Threads connected by exchange that is strong for both of them; groups of 2 to N-1, heaviest first."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    comm = analysis.pairs.entries()
    row, column = comm.nonzero()
    peak = np.zeros(comm.shape[0])
    np.maximum.at(peak, row, comm.data)
    strong = (comm.data >= STRONG * peak[row]) & (comm.data >= STRONG * peak[column])
    edges = csr_array((comm.data[strong], (row[strong], column[strong])), comm.shape)
    count, label = connected_components(edges, directed=False)
    inside = label[row] == label[column]
    heaviest = np.argsort(-np.bincount(label[row[inside]], comm.data[inside], count), kind="stable")
    members = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
    groups = [members[number].tolist() for number in heaviest]
    return [group for group in groups if 1 < len(group) < comm.shape[0]]


def thread_list(paths: Sequence[str]) -> str:
    """Creation paths as one reads them: at most eight, then how many more."""
    shown = ", ".join(paths[:8])
    return shown if len(paths) <= 8 else f"{shown} and {len(paths) - 8} more"


def main_region(group: Sequence[int], regions: Sequence[RegionUse], pages: PageCounts | None) -> str:
    """Where a group meets, as ", mostly in heap x": most of its accesses to pages that one of it writes and
    others of it touch; empty where no region has most of them.
    """
    if pages is None:
        return ""
    mine = np.isin(pages.thread, group)
    region = pages.region[mine]
    if not len(region):
        return ""
    number = np.unique(pages.page_number[mine], return_inverse=True)[1]
    written = np.bincount(number, pages.writes[mine]) > 0
    shared = (written & (np.bincount(number, pages.accesses[mine] > 0) > 1))[number]
    count = np.bincount(region[shared], pages.accesses[mine][shared])
    if not count.sum() or count.max() < MOSTLY * count.sum():
        return ""
    found = [use for use in regions if use.region == int(count.argmax())]
    return f", mostly in {found[0].title}" if found else ""


def main_times(group: Sequence[int], analysis: Analysis) -> str:
    """When a group exchanges, as ", mostly at 10-20 ms": the stretch between changes of partners, or phase,
    that has most of its events and more than its length explains; empty where none has.
    """
    line, cells = analysis.timeline, analysis.exchanges
    if not cells.size:
        return ""
    rows, columns = np.triu_indices(len(analysis.threads), 1)
    events = cells[:, np.isin(rows, group) & np.isin(columns, group)].sum(axis=1)
    total = float(events.sum())
    phases = {phase.start for phase in analysis.phases[1:]}
    borders = sorted({0, len(line.per_thread), *(analysis.partner_changes or phases)})
    if total == 0 or len(borders) < 3:
        return ""
    for start, end in pairwise(borders):
        part = slice(start // analysis.exchange_slices, -(-end // analysis.exchange_slices))
        share = float(events[part].sum()) / total
        if share >= MOSTLY and share >= DENSER * (end - start) / len(line.per_thread):
            return f", mostly at {line.moment(start)}–{line.moment(end)} {line.unit}"
    return ""
