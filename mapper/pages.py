"""Where pages should live: from who touched which page to runs of a region on a node.

A page's home is the node whose threads touch it most; pages that many nodes read and hardly anyone writes are
interleaved, so that no one memory controller serves them all; neighbours with one home become one run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.mapper.capacity import fit_capacity
from numaplan.mapper.plan import PlanRegion, RegionKey, Run
from numaplan.profiler.machine import Machine

PAGE = 4096
MAX_RUNS = 64  # of one region
MAX_REGIONS = 1000
MAX_ALL_RUNS = 10_000  # with MAX_REGIONS keeps the plan file under 1 MB, however much memory there is
LEAST_RUNS = 4  # that every region may have
UNPLACED = 1e-3  # share of all accesses that the least used regions, not worth a line in the plan, may have
READ_MOSTLY = 0.05  # share of writes below which replicated reading is what counts
SPREAD = 0.6  # a page is everybody's when no node has more than this share of its accesses

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PageStats:
    """Accesses counted by (region, page of the region, thread); equally long arrays. regions: their keys.

    toucher: the thread seen on the page first of all, initialisation included; -1 or None: not known.
    """

    regions: Sequence[RegionKey]
    region: Ints
    page: Ints
    thread: Ints
    accesses: Ints
    writes: Ints
    toucher: Ints | None = None


@dataclass(frozen=True)
class PagePlan:
    """The regions' placement, and what share of the counted accesses it makes local (-1: none counted).

    traffic: (K, K) accesses from each node (row) to memory of each (column), in the machine's order.
    """

    memory: tuple[PlanRegion, ...]
    local_share: float
    traffic: NDArray[np.float64] | None = None


def place_pages(
    stats: PageStats, thread_nodes: ArrayLike, machine: Machine, *, max_runs: int = MAX_RUNS
) -> PagePlan:
    """Place the pages of every counted region.

    thread_nodes: (N,) node id of each thread. Regions with most accesses come first in the plan; at most
    MAX_REGIONS. Nodes' memory is not overfilled: what does not fit goes to the next best node by accesses,
    then by distance.
    """
    column = {node.id: place for place, node in enumerate(machine.nodes)}
    node_of = np.array([column[node] for node in np.asarray(thread_nodes).tolist()], dtype=np.int64)
    by_region = np.argsort(stats.region, kind="stable")
    borders = np.searchsorted(stats.region[by_region], np.arange(len(stats.regions) + 1))
    tables: list[RunTable] = []
    busiest = _busiest(stats)
    spare = MAX_ALL_RUNS - LEAST_RUNS * len(busiest)  # the busiest regions have first use of these
    for number in busiest:
        rows = by_region[borders[number] : borders[number + 1]]
        table = _node_table(stats, number, rows, node_of, column, min(max_runs, LEAST_RUNS + spare))
        if table is not None:
            tables.append(table)
            spare -= max(0, len(table.home) - LEAST_RUNS)
    fit_capacity(tables, machine)
    memory = tuple(_plan_region(table, machine) for table in tables)
    traffic = np.zeros((len(machine.nodes), len(machine.nodes)))
    for table in tables:
        table.add_traffic(traffic)
    counted = float(traffic.sum())
    return PagePlan(memory, float(np.trace(traffic)) / counted if counted else -1.0, traffic)


@dataclass
class RunTable:
    """One region cut into runs: first[i]..first[i+1] pages on home[i]; accesses: (R, nodes) of each run."""

    key: RegionKey
    first: Ints  # (R + 1,) page numbers; the last is the region's end
    accesses: NDArray[np.float64]
    home: Ints
    interleave: tuple[int, ...] = ()

    def bytes_of(self) -> Ints:
        """Size of each run."""
        return np.minimum(self.first[1:] * PAGE, self.key.bytes) - self.first[:-1] * PAGE

    def add_traffic(self, traffic: NDArray[np.float64]) -> None:
        """Add the accesses from each node (row) to the memory of each (column)."""
        if self.interleave:
            traffic[:, list(self.interleave)] += self.accesses.sum(axis=0)[:, None] / len(self.interleave)
        else:
            np.add.at(traffic.T, self.home, self.accesses)


def _busiest(stats: PageStats) -> list[int]:
    totals = np.bincount(stats.region, weights=stats.accesses, minlength=len(stats.regions))
    order = np.argsort(-totals, kind="stable")[:MAX_REGIONS]
    before = np.cumsum(totals[order]) - totals[order]
    wanted = (totals[order] > 0) & (before < (1 - UNPLACED) * totals.sum())
    return [int(number) for number in order[wanted]]


def _node_table(
    stats: PageStats, number: int, rows: Ints, node_of: Ints, column: Mapping[int, int], max_runs: int
) -> RunTable | None:
    """Runs of one region with their accesses by node; rows: where the region stands in the statistics."""
    key = stats.regions[number]
    thread, page = stats.thread[rows], stats.page[rows]
    rows = rows[(thread >= 0) & (thread < len(node_of)) & (page >= 0) & (page * PAGE < key.bytes)]
    if not len(rows):
        return None
    pages, place = np.unique(stats.page[rows], return_inverse=True)
    counts = np.zeros((len(pages), len(column)))
    np.add.at(counts, (place, node_of[stats.thread[rows]]), stats.accesses[rows])
    ends = -(-key.bytes // PAGE)
    if _shared_reading(counts, float(stats.writes[rows].sum())):
        users = tuple(int(node) for node in np.flatnonzero(counts.sum(axis=0) > 0))
        bounds = np.array([0, ends])
        return RunTable(key, bounds, counts.sum(axis=0, keepdims=True), np.array([users[0]]), users)
    first, totals = _merge(pages, counts, max_runs)
    return RunTable(key, np.append(first, ends), totals, totals.argmax(axis=1))


def _shared_reading(counts: NDArray[np.float64], writes: float) -> bool:
    """Whether most accesses of a region are to pages that many nodes read and hardly anyone writes."""
    totals = counts.sum(axis=1)
    everybodys = counts.max(axis=1) <= SPREAD * totals
    busy = totals[everybodys].sum() > totals.sum() / 2
    return bool(busy and writes <= READ_MOSTLY * totals.sum())


def _merge(pages: Ints, counts: NDArray[np.float64], limit: int) -> tuple[Ints, NDArray[np.float64]]:
    """First page of each run, and its accesses; pages never seen go with the one before them.

    While there are too many runs, pages are judged in ever larger granules.
    """
    granule = 1
    while True:
        cells, place = np.unique(pages // granule, return_inverse=True)
        sums = np.zeros((len(cells), counts.shape[1]))
        np.add.at(sums, place, counts)
        home = sums.argmax(axis=1)
        starts = np.flatnonzero(np.append(True, home[1:] != home[:-1]))
        if len(starts) <= limit:
            first = cells[starts] * granule
            first[0] = 0
            return first, np.add.reduceat(sums, starts, axis=0)
        granule *= 2


def _plan_region(table: RunTable, machine: Machine) -> PlanRegion:
    ids = machine.node_ids
    if table.interleave:
        return PlanRegion(region=table.key, policy="interleave", runs=_equal_parts(table, ids))
    keep = np.append(True, table.home[1:] != table.home[:-1])  # neighbours may have come together since
    first = np.append(table.first[:-1][keep], table.first[-1])
    ends = np.minimum(first[1:] * PAGE, table.key.bytes)
    runs = tuple(
        Run(offset=start * PAGE, bytes=end - start * PAGE, node=ids[home])
        for start, end, home in zip(
            first[:-1].tolist(), ends.tolist(), table.home[keep].tolist(), strict=True
        )
    )
    return PlanRegion(region=table.key, policy="bind", runs=runs)


def _equal_parts(table: RunTable, ids: Sequence[int]) -> tuple[Run, ...]:
    """One run a node, page aligned, over the whole region (fewer when it has fewer pages)."""
    pages = int(table.first[-1])
    nodes = table.interleave[:pages]
    cuts = [pages * part // len(nodes) for part in range(len(nodes) + 1)]
    return tuple(
        Run(offset=a * PAGE, bytes=min(b * PAGE, table.key.bytes) - a * PAGE, node=ids[node])
        for node, a, b in zip(nodes, cuts[:-1], cuts[1:], strict=True)
    )
