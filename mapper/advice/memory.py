"""Regions that the wrong thread touches first: initialise them in parallel, or spread them over the nodes."""

from collections.abc import Sequence
from pathlib import PurePath

import numpy as np

from numaplan.analyzer import Advice, RegionUse

from ..memory.run_table import PAGE, RunTable
from ..planning.cost.unplanned import alone, in_openmp_order
from .binding import BOUND
from .changed_touch import touched_by_users
from .first_writes import first_write
from .own_lines import FORTRAN
from .situation import Situation, by_place, gained, made_at, short_name

MOST = 0.5
MORE = 1.1  # times what one region gains
MOST_NAMES = 3


def by_region(situation: Situation) -> list[Advice]:
    """For each region, or all blocks of one place in the code, what gains most, if anything; for all of them
    together where that gains more: a program that alternates between two has little of the one alone."""
    groups = by_place(situation.regions, lambda use: use.samples * use.foreign_first)
    if situation.task.pages.first_touches.toucher is None or not groups:
        return []
    found = [one for group in groups if (one := _of_group(situation, group)) is not None]
    best = max((gained(one) for one in found), default=0.0)
    whole = _initialised(situation, groups) if len(groups) > 1 else None
    return [whole] if whole is not None and gained(whole) > MORE * best else found


def _of_group(situation: Situation, group: Sequence[RegionUse]) -> Advice | None:
    tried = _initialised(situation, [group]), _spread(situation, group)
    found = [one for one in tried if one is not None]
    return max(found, key=gained, default=None)


def _initialised(situation: Situation, groups: Sequence[Sequence[RegionUse]]) -> Advice | None:
    """Each page first touched by who uses it; with the threads bound where that gains more."""
    task, numbers = situation.task, [use.region for group in groups for use in group]
    thread, evidence = _first_toucher(situation, numbers)
    if not evidence:
        return None
    other = task.with_misses(touched_by_users(task.pages.recorded, numbers))
    kept, order = in_openmp_order(task), in_openmp_order(other)
    gains = {
        "free": situation.gain(alone(other)),
        # What binding gains by itself is no gain of this.
        "bound": situation.gain(order) if situation.gain(order, kept) else 0.0,
    }
    best = max(gains, key=lambda name: gains[name])
    if not gains[best]:
        return None
    binds = best == "bound"
    place = first_write(situation.trace, numbers, thread)
    return situation.advice(
        "initialise",
        order if binds else alone(other),
        other,
        action=f"initialise {_called(groups)} in parallel" + (f" at {place}" if place else ""),
        evidence=evidence + made_at([group[0] for group in groups[:MOST_NAMES]]),
        change=_parallel(situation, [use for group in groups for use in group], binds=binds),
    )


def _parallel(situation: Situation, uses: Sequence[RegionUse], *, binds: bool) -> str:
    if situation.openmp:
        fortran = any(use.source and PurePath(use.source.path).suffix[1:] in FORTRAN for use in uses)
        loop = "!$omp parallel do" if fortran else "#pragma omp parallel for"
        text = f"{loop} schedule(static) on the loop that fills it, as on those that use it"
        return f"{text}; then {BOUND} {situation.command}" if binds else text
    text = "let each thread write first what it will use"
    return f"{text}, and bind the threads (pthread_setaffinity_np)" if binds else text


def _called(groups: Sequence[Sequence[RegionUse]]) -> str:
    counts: dict[str, int] = {}
    for group in groups:
        name = short_name(group[0])
        counts[name] = counts.get(name, 0) + len(group)
    names = [f"{count} blocks of " * (count > 1) + name for name, count in counts.items()]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _first_toucher(situation: Situation, numbers: Sequence[int]) -> tuple[int, str]:
    """The thread of the trace that touches most pages of regions first; how many, and how little it uses
    them. Empty where no thread touches most of them, or it makes most accesses to them, too."""
    pages = situation.task.pages.recorded
    assert pages.toucher is not None
    rows = np.flatnonzero(np.isin(pages.region, list(numbers)) & (pages.toucher >= 0) & (pages.thread >= 0))
    if not len(rows):
        return -1, ""
    first = rows[np.unique(pages.page_number[rows], return_index=True)[1]]
    touched = np.bincount(pages.toucher[first])
    lane = int(touched.argmax())
    thread = int(np.flatnonzero(situation.lane == lane)[0])  # the first of those that follow each other
    used = np.bincount(pages.thread[rows], pages.all_accesses[rows], lane + 1)
    first_share, own_share = touched[lane] / touched.sum(), used[lane] / used.sum()
    if first_share < MOST or own_share > MOST:
        return thread, ""
    whose = "its" if len(numbers) == 1 else "their"
    return thread, (
        f"{first_share:.0%} of {whose} pages are touched first by thread {situation.names[thread]}, which "
        f"makes {own_share:.0%} of {whose} accesses"
    )


def _spread(situation: Situation, group: Sequence[RegionUse]) -> Advice | None:
    """The regions interleaved over all nodes."""
    task = situation.task
    nodes = tuple(sorted(set(task.rows.tolist())))
    if len(nodes) < 2 or len(task.rows) < 2:
        return None
    tables = {}
    for use in group:
        key = task.pages.recorded.regions[use.region]
        ends = np.array([0, -(-key.bytes // PAGE)])
        tables[use.region] = RunTable(key, ends, np.zeros((1, len(nodes))), np.array([nodes[0]]), nodes)
    instead = alone(task, tables=tables)
    if not situation.gain(instead):
        return None
    use = group[0]
    read = "hardly written after that" if use.read_mostly else "written by several"
    _, evidence = _first_toucher(situation, [one.region for one in group])
    if not evidence:
        return None
    return situation.advice(
        "interleave-region",
        instead,
        action=f"spread {_called([group])} over the nodes",
        evidence=f"{evidence}; {use.sharers} threads use it, {read}{made_at(group[:1])}",
        change="numa_interleave_memory(block, bytes, numa_all_nodes_ptr) before its first write (libnuma)",
    )
