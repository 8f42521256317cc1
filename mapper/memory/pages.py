"""Pages to nodes: from the accesses of each page to runs of a region on a node.

A page's home is the node whose threads touch it most; pages that many nodes read and hardly anyone writes are
interleaved, so that no one memory controller serves them all; neighbours with one home become one run. What
the plan does not place (stacks, small blocks, libraries' data) is where it was first touched. Of regions that
nobody knows the users of, no page is anyone's: they are interleaved, or where they are first touched.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.analyzer import PageCounts
from numaplan.machine import Machine
from numaplan.profiler import RegionKey

from ..plan_file.parts import PlanRegion, Policy, Run
from .capacity import fit_capacity, spread_traffic
from .left_out import better_touched, leave_out
from .next_touch import next_touch_gain
from .run_table import PAGE, RunTable, Spread, counts_by_node, make_table
from .site_rules import Site, SiteRule, site_of, site_rules, table_of_block, tables_by_region, totals_by_entry
from .traffic import between_nodes, node_positions, planned_traffic

MAX_RUNS = 4096  # of one region
MAX_REGIONS = 1000
WITNESSES = 16  # of a rule's blocks
MAX_ALL_RUNS = 10_000  # with MAX_REGIONS keeps the plan file under 1 MB, however much memory there is
LEAST_RUNS = 4  # that every region may have
UNPLACED = 1e-3  # share of all accesses that the least used regions, not worth a line in the plan, may have

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Counts = Ints | Floats


class PagePlan(msgspec.Struct, frozen=True):
    """The regions' placement, and what share of the counted accesses it makes local (-1: none counted).

    traffic: (K, K) accesses from each node (row) to memory of each (column), in the machine's order;
    changing: regions that would gain from moving along with their users, and by what share of their accesses,
    where the launcher can see to it (`moving`), or the program alone;
    homes: (rows of the statistics,) position of the node of each row's page, -1 if spread or unplanned;
    left: small regions of libraries that are as good where they are touched first; tables: of each region
    that is placed, by its number in the statistics.
    """

    memory: tuple[PlanRegion, ...]
    local_share: float = -1.0
    traffic: NDArray[np.float64] | None = None
    changing: tuple[tuple[RegionKey, float], ...] = ()
    moving: tuple[tuple[RegionKey, float], ...] = ()
    homes: Ints | None = None
    left: tuple[RegionKey, ...] = ()
    tables: Mapping[int, RunTable] = msgspec.field(default_factory=dict)


def place_pages(
    stats: PageCounts,
    thread_nodes: ArrayLike,
    machine: Machine,
    *,
    max_runs: int = MAX_RUNS,
    next_touch: bool = False,
    spread: Spread = "reads",
) -> PagePlan:
    """Place the pages of every counted region.

    thread_nodes: (N,) node id of each thread. Regions with most accesses come first in the plan; at most
    MAX_REGIONS. Nodes' memory is not overfilled: what does not fit goes to the next best node by accesses,
    then by distance; of faster memory without cpus the hottest pages get as much as there is. next_touch:
    regions whose users change from one team of threads to the next are left to who touches them next.
    spread: as for `make_table`.
    """
    column = {node: place for place, node in enumerate(machine.node_ids)}
    node_of = node_positions(thread_nodes, machine)
    by_region = np.argsort(stats.region, kind="stable")
    borders = np.searchsorted(stats.region[by_region], np.arange(len(stats.regions) + 1))
    tables: dict[int, RunTable] = {}
    changing, moving = [], []
    rules = {
        int(rule.members[0]): rule
        for rule in site_rules(stats, node_of, column, spread)
        if not _is_moving(stats, rule, by_region, borders, node_of)
    }
    busiest = _busiest(stats, rules.values())
    spare = MAX_ALL_RUNS - LEAST_RUNS * len(busiest)  # the busiest regions have first use of these
    for number in busiest:
        if number in rules:
            tables[number] = rules[number].table
            spare -= max(0, len(tables[number].home) - LEAST_RUNS)
            continue
        rows = _usable(
            stats, by_region[borders[number] : borders[number + 1]], stats.regions[number], node_of
        )
        unknown = stats.regions[number] in stats.unfollowed
        if not len(rows) or (unknown and better_touched(stats, rows, node_of)):
            continue
        pages, counts = counts_by_node(stats, rows, node_of, column)
        limit = min(max_runs, LEAST_RUNS + spare)
        writes = float(stats.writes[rows].sum())
        how: Spread = "all" if unknown else spread
        table = make_table(stats.regions[number], pages, counts, writes, limit, how)
        if not table.interleave:
            gain = next_touch_gain(stats, rows, node_of, table, stats.team)
            if gain > 0:
                moving.append((table.key, gain))
                table.next_touch = next_touch
            elif (gain := next_touch_gain(stats, rows, node_of, table, stats.phase)) > 0:
                changing.append((table.key, gain))
        tables[number] = table
        spare -= max(0, len(table.home) - LEAST_RUNS)
    left = leave_out(stats, tables, rules, node_of, by_region, borders)
    fit_capacity(list(tables.values()), machine)
    spread_traffic(list(tables.values()), machine)
    found = PagePlan(
        memory=tuple(
            msgspec.structs.replace(
                _plan_region(table, machine), share=share, source=_source(stats, number, rules.get(number))
            )
            for (number, table), share in zip(tables.items(), _shares(stats, tables, rules), strict=True)
        ),
        changing=tuple(changing),
        moving=tuple(moving),
        left=tuple(left),
        tables=tables_by_region(stats, tables, rules),
    )
    return _accessed(found, stats, node_of, len(column))


def without(
    found: PagePlan, sites: Collection[Site], stats: PageCounts, thread_nodes: ArrayLike, machine: Machine
) -> PagePlan:
    """The same placement of the same counts, but regions of these sites are where they are touched first."""
    kept = msgspec.structs.replace(
        found,
        memory=tuple(one for one in found.memory if site_of(one.region) not in sites),
        changing=tuple(one for one in found.changing if site_of(one[0]) not in sites),
        moving=tuple(one for one in found.moving if site_of(one[0]) not in sites),
        tables={number: one for number, one in found.tables.items() if site_of(one.key) not in sites},
    )
    return _accessed(kept, stats, node_positions(thread_nodes, machine), len(machine.nodes))


def _accessed(found: PagePlan, stats: PageCounts, node_of: Ints, nodes: int) -> PagePlan:
    """With the traffic that its tables bring."""
    by_thread, homes = planned_traffic(stats, found.tables, node_of, nodes)
    traffic = between_nodes(by_thread, node_of)
    counted = float(traffic.sum())
    local = float(np.trace(traffic)) / counted if counted else -1.0
    return msgspec.structs.replace(found, local_share=local, traffic=traffic, homes=homes)


def _source(stats: PageCounts, number: int, rule: SiteRule | None) -> str | msgspec.UnsetType:
    """What the source calls a region, or all blocks of a rule."""
    members = rule.members.tolist() if rule else [number]
    names = {stats.sources.get(stats.regions[member], "") for member in members}
    return (names.pop() or msgspec.UNSET) if len(names) == 1 else msgspec.UNSET


def _is_moving(stats: PageCounts, rule: SiteRule, by_region: Ints, borders: Ints, node_of: Ints) -> bool:
    """Whether users of its blocks change, by some of them: then each is looked at by itself."""
    if stats.phase is None or rule.table.interleave:
        return False
    for number in rule.members[:WITNESSES].tolist():
        key = stats.regions[number]
        rows = _usable(stats, by_region[borders[number] : borders[number + 1]], key, node_of)
        table = table_of_block(rule.table, key)
        if any(next_touch_gain(stats, rows, node_of, table, of) > 0 for of in (stats.team, stats.phase)):
            return True
    return False


def _usable(stats: PageCounts, rows: Ints, key: RegionKey, node_of: Ints) -> Ints:
    """Rows with a known thread, a page inside of the region, and accesses that count."""
    thread, page = stats.thread[rows], stats.page[rows]
    inside = (thread >= 0) & (thread < len(node_of)) & (page >= 0) & (page * PAGE < key.bytes)
    return rows[inside & (stats.accesses[rows] > 0)]


def _busiest(stats: PageCounts, rules: Iterable[SiteRule]) -> list[int]:
    """Regions, and of each rule the first member, with most accesses first."""
    totals = totals_by_entry(stats, stats.accesses, rules)
    order = np.argsort(-totals, kind="stable")[:MAX_REGIONS]
    before = np.cumsum(totals[order]) - totals[order]
    wanted = (totals[order] > 0) & (before < (1 - UNPLACED) * totals.sum())
    return [int(number) for number in order[wanted]]


def _shares(stats: PageCounts, tables: Mapping[int, RunTable], rules: Mapping[int, SiteRule]) -> list[float]:
    """Of all accesses, those to each entry of the plan."""
    counts = stats.all_accesses.astype(np.float64)
    every = counts.sum() + (0.0 if stats.elsewhere is None else stats.elsewhere.sum())
    totals = totals_by_entry(stats, counts, [rule for number, rule in rules.items() if number in tables])
    return [float(f"{min(totals[number] / every, 1.0):.4g}") for number in tables]


def _plan_region(table: RunTable, machine: Machine) -> PlanRegion:
    ids = machine.node_ids
    blocks = table.blocks or msgspec.UNSET
    if table.interleave:
        return PlanRegion(region=table.key, policy="interleave", runs=_equal_parts(table, ids), blocks=blocks)
    keep = np.append(True, table.home[1:] != table.home[:-1])  # neighbours may have come together since
    first = np.append(table.first[:-1][keep], table.first[-1])
    ends = np.minimum(first[1:] * PAGE, table.key.bytes)
    runs = tuple(
        Run(offset=start * PAGE, bytes=end - start * PAGE, node=ids[home])
        for start, end, home in zip(
            first[:-1].tolist(), ends.tolist(), table.home[keep].tolist(), strict=True
        )
    )
    policy: Policy = "next-touch" if table.next_touch else "bind"
    return PlanRegion(region=table.key, policy=policy, runs=runs, blocks=blocks)


def _equal_parts(table: RunTable, ids: Sequence[int]) -> tuple[Run, ...]:
    """One run a node, page aligned, over the whole region (fewer when it has fewer pages)."""
    pages = int(table.first[-1])
    nodes = table.interleave[:pages]
    cuts = [pages * part // len(nodes) for part in range(len(nodes) + 1)]
    return tuple(
        Run(offset=a * PAGE, bytes=min(b * PAGE, table.key.bytes) - a * PAGE, node=ids[node])
        for node, a, b in zip(nodes, cuts[:-1], cuts[1:], strict=True)
    )
