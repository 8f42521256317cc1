"""Memory that all nodes read and hardly anyone writes: a copy for each node."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from numaplan.analyzer import Advice, PageCounts, RegionUse, in_bytes
from numaplan.machine import OVERLAP, latencies

from ..planning.cost.placement import Placement
from ..planning.cost.unplanned import alone
from .situation import Situation, by_place, gained, made_at, short_name

LINE, PAGE = 64, 4096
MORE = 1.1  # times what is gained without a copy
MOST_SHARE = 0.6  # of a region's accesses, that one node may make
CHANGE = (
    "make a copy of it on each node once it is filled (numa_alloc_onnode), and let threads read their own "
    "node's (numa_node_of_cpu(sched_getcpu()))"
)


def replicated(situation: Situation, other_gains: Iterable[float]) -> list[Advice]:
    """For each region, or all blocks of one place in the code; other_gains: of what else can be done about
    memory, beyond which this must go, as it costs memory and a change of the code."""
    if situation.task.pages.first_touches.toucher is None:
        return []
    least = MORE * max(other_gains, default=0.0)
    groups = by_place(situation.regions, lambda use: use.samples if use.read_mostly else 0)
    found = [_of_group(situation, group) for group in groups]
    return [one for one in found if one is not None and gained(one) > least]


def read_by_all(situation: Situation) -> list[int]:
    """Numbers of the regions that threads of all nodes read alike, and hardly anyone writes."""
    found = [use.region for use in situation.regions if use.read_mostly and use.sharers > 1]
    return [number for number in found if 0 <= _use(situation, [number])[0] <= MOST_SHARE]


def _of_group(situation: Situation, group: Sequence[RegionUse]) -> Advice | None:
    task, numbers = situation.task, [use.region for use in group]
    most, others = _use(situation, numbers)
    if not 0 <= most <= MOST_SHARE:
        return None
    nodes = len(task.machine.cpu_nodes)
    instead, size = _with_copies(situation, numbers)
    if not situation.gain(instead):
        return None
    called = f"{len(group)} blocks of " * (len(group) > 1) + short_name(group[0])
    return situation.advice(
        "replicate",
        instead,
        action=f"give each node a copy of {called}",
        evidence=f"{group[0].sharers} threads read all of it, {others:.0%} of its accesses are writes by "
        f"others than who filled it; {nodes} copies take {in_bytes(nodes * size)}{made_at(group[:1])}",
        change=CHANGE,
    )


def _use(situation: Situation, numbers: Sequence[int]) -> tuple[float, float]:
    """The share of the accesses to pages of regions that the node which uses each most makes, as threads are
    now, -1: none; and that of writes, but for those of who touched it first."""
    task, pages = situation.task, situation.task.pages.recorded
    rows = np.flatnonzero(np.isin(pages.region, list(numbers)) & (pages.thread >= 0) & (pages.accesses > 0))
    if not len(rows) or pages.toucher is None:
        return -1.0, 0.0
    node = task.rows[situation.usual.places[pages.thread[rows]]]
    count = len(task.machine.nodes)
    _, page = np.unique(pages.page_number[rows], return_inverse=True)
    made = np.bincount(page * count + node, pages.accesses[rows], (int(page.max()) + 1) * count)
    by_page = made.reshape(-1, count)
    total = float(by_page.sum())
    others = pages.thread[rows] != pages.toucher[rows]
    return float(by_page.max(axis=1).sum()) / total, float(pages.writes[rows][others].sum()) / total


def without(pages: PageCounts, regions: Collection[int]) -> PageCounts:
    """The same but for accesses to these regions."""
    left = ~np.isin(pages.region, list(regions))
    names = ("accesses", "before", "missed", "missed_before")
    kept = {name: values * left for name in names if (values := getattr(pages, name)) is not None}
    return msgspec.structs.replace(pages, **kept)


def _with_copies(situation: Situation, numbers: Sequence[int]) -> tuple[Placement, int]:
    """What the kernel does where each node has its own copy of regions; and the bytes of one that are used.

    Who reads does so on its own node, wherever that is; what copying takes is in the cost.
    """
    task, pages = situation.task, situation.task.pages.recorded
    rows = np.isin(pages.region, list(numbers)) & (pages.thread >= 0) & (pages.all_accesses > 0)
    size = len(np.unique(pages.page_number[rows])) * PAGE
    rest, every = alone(task.with_misses(without(pages, numbers))), latencies(task.machine)
    own = np.maximum(situation.usual.traffic - rest.traffic, 0.0).sum()
    cost = msgspec.structs.replace(
        rest.cost,
        memory_ns=rest.cost.memory_ns + float(own) * float(np.diag(every).mean()) / OVERLAP,
        moves_ns=rest.cost.moves_ns
        + size / LINE * float(every.max()) / OVERLAP * (len(task.machine.cpu_nodes) - 1),
    )
    return replace(rest, cost=cost), size
