"""Where pages should live: from who touched which page to runs of a region on a node.

A page's home is the node whose threads touch it most; pages that many nodes read and hardly anyone writes are
interleaved, so that no one memory controller serves them all; neighbours with one home become one run. What
the plan does not place (stacks, small blocks, libraries' data) is where it was first touched.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.mapper.capacity import fit_capacity
from numaplan.mapper.controllers import spread_traffic
from numaplan.mapper.next_touch import next_touch_gain
from numaplan.mapper.page_runs import PAGE, RunTable, counts_by_node, make_table
from numaplan.mapper.plan import PlanRegion, RegionKey, Run
from numaplan.mapper.small_regions import without_gain
from numaplan.profiler.machine import Machine

MAX_RUNS = 4096  # of one region
MAX_REGIONS = 1000
MAX_ALL_RUNS = 10_000  # with MAX_REGIONS keeps the plan file under 1 MB, however much memory there is
LEAST_RUNS = 4  # that every region may have
UNPLACED = 1e-3  # share of all accesses that the least used regions, not worth a line in the plan, may have

Ints = NDArray[np.int64]
Counts = NDArray[np.int64] | NDArray[np.float64]


class PageStats(msgspec.Struct, frozen=True):
    """Accesses counted by (region, page of the region, thread, phase); equally long arrays.

    regions: keys of those that a plan can place. toucher: the thread seen on the page first of all,
    initialisation included; -1 or None: not known. before: further accesses, from before the threads start:
    they say nothing of who will use the page, but they are made. phase: number of the phase of the run (None:
    one). elsewhere: (N, N) accesses of each thread to memory that no plan places, by the thread that touched
    its page first. period: accesses that one count stands for.
    """

    regions: Sequence[RegionKey]
    region: Ints
    page: Ints
    thread: Ints
    accesses: Counts
    writes: Counts
    toucher: Ints | None = None
    before: Counts | None = None
    phase: Ints | None = None
    teams: Ints | None = None
    elsewhere: NDArray[np.float64] | None = None
    period: int = 1

    @property
    def all_accesses(self) -> Counts:
        """Accesses with those from before the threads start."""
        return self.accesses if self.before is None else self.accesses + self.before

    @property
    def team(self) -> Ints | None:
        """Of each row, the time between two marks of the launcher that it is in; None: there is one."""
        return None if self.phase is None or self.teams is None else self.teams[self.phase]


class PagePlan(msgspec.Struct, frozen=True):
    """The regions' placement, and what share of the counted accesses it makes local (-1: none counted).

    traffic: (K, K) accesses from each node (row) to memory of each (column), in the machine's order;
    changing: regions that would gain from moving along with their users, and by what share of their accesses,
    where the launcher can see to it (`moving`), or the program alone;
    homes: (rows of the statistics,) position of the node of each row's page, -1 if spread or unplanned;
    left: small regions of libraries that are as good where they are touched first.
    """

    memory: tuple[PlanRegion, ...]
    local_share: float
    traffic: NDArray[np.float64] | None = None
    changing: tuple[tuple[RegionKey, float], ...] = ()
    moving: tuple[tuple[RegionKey, float], ...] = ()
    homes: Ints | None = None
    left: tuple[RegionKey, ...] = ()


def place_pages(
    stats: PageStats,
    thread_nodes: ArrayLike,
    machine: Machine,
    *,
    max_runs: int = MAX_RUNS,
    next_touch: bool = False,
) -> PagePlan:
    """Place the pages of every counted region.

    thread_nodes: (N,) node id of each thread. Regions with most accesses come first in the plan; at most
    MAX_REGIONS. Nodes' memory is not overfilled: what does not fit goes to the next best node by accesses,
    then by distance; of faster memory without cpus the hottest pages get as much as there is. next_touch:
    regions whose users change from one team of threads to the next are left to who touches them next.
    """
    column = {node.id: place for place, node in enumerate(machine.nodes)}
    node_of = np.array([column[node] for node in np.asarray(thread_nodes).tolist()], dtype=np.int64)
    by_region = np.argsort(stats.region, kind="stable")
    borders = np.searchsorted(stats.region[by_region], np.arange(len(stats.regions) + 1))
    tables: dict[int, RunTable] = {}
    changing, moving = [], []
    busiest = _busiest(stats)
    spare = MAX_ALL_RUNS - LEAST_RUNS * len(busiest)  # the busiest regions have first use of these
    for number in busiest:
        rows = _usable(
            stats, by_region[borders[number] : borders[number + 1]], stats.regions[number], node_of
        )
        if not len(rows):
            continue
        pages, counts = counts_by_node(stats, rows, node_of, column)
        limit = min(max_runs, LEAST_RUNS + spare)
        table = make_table(stats.regions[number], pages, counts, float(stats.writes[rows].sum()), limit)
        if not table.interleave:
            gain = next_touch_gain(stats, rows, node_of, table, stats.team)
            if gain > 0:
                moving.append((table.key, gain))
                table.next_touch = next_touch
            elif (gain := next_touch_gain(stats, rows, node_of, table, stats.phase)) > 0:
                changing.append((table.key, gain))
        tables[number] = table
        spare -= max(0, len(table.home) - LEAST_RUNS)
    left = [tables.pop(number).key for number in without_gain(stats, tables, node_of)]
    fit_capacity(list(tables.values()), machine)
    spread_traffic(list(tables.values()), machine)
    from numaplan.mapper.traffic import planned_traffic

    traffic, homes = planned_traffic(stats, tables, node_of, len(column))
    counted = float(traffic.sum())
    return PagePlan(
        memory=tuple(_plan_region(table, machine) for table in tables.values()),
        local_share=float(np.trace(traffic)) / counted if counted else -1.0,
        traffic=traffic,
        changing=tuple(changing),
        moving=tuple(moving),
        homes=homes,
        left=tuple(left),
    )


def _usable(stats: PageStats, rows: Ints, key: RegionKey, node_of: Ints) -> Ints:
    """Rows with a known thread, a page inside of the region, and accesses that count."""
    thread, page = stats.thread[rows], stats.page[rows]
    inside = (thread >= 0) & (thread < len(node_of)) & (page >= 0) & (page * PAGE < key.bytes)
    return rows[inside & (stats.accesses[rows] > 0)]


def _busiest(stats: PageStats) -> list[int]:
    totals = np.bincount(stats.region, weights=stats.accesses, minlength=len(stats.regions))
    order = np.argsort(-totals, kind="stable")[:MAX_REGIONS]
    before = np.cumsum(totals[order]) - totals[order]
    wanted = (totals[order] > 0) & (before < (1 - UNPLACED) * totals.sum())
    return [int(number) for number in order[wanted]]


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
    return PlanRegion(region=table.key, policy="next-touch" if table.next_touch else "bind", runs=runs)


def _equal_parts(table: RunTable, ids: Sequence[int]) -> tuple[Run, ...]:
    """One run a node, page aligned, over the whole region (fewer when it has fewer pages)."""
    pages = int(table.first[-1])
    nodes = table.interleave[:pages]
    cuts = [pages * part // len(nodes) for part in range(len(nodes) + 1)]
    return tuple(
        Run(offset=a * PAGE, bytes=min(b * PAGE, table.key.bytes) - a * PAGE, node=ids[node])
        for node, a, b in zip(nodes, cuts[:-1], cuts[1:], strict=True)
    )
