"""What a plan says of the memory that a program has today: tables of its entries for today's regions.

As the launcher finds them: a region by itself, whatever its size, before the rule for its call site; static
data of another build of a module is not placed, nor are stacks, which are with their threads.
"""

from collections import defaultdict
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts
from numaplan.machine import Machine
from numaplan.profiler import RegionKey

from ..plan_file.parts import PlanRegion
from .run_table import PAGE, RunTable
from .site_rules import Site, site_of

Ints = NDArray[np.int64]


class PlannedTables(msgspec.Struct, frozen=True):
    """tables: of each region that the plan places, by its number today; missing: entries of which today's run
    has no region."""

    tables: dict[int, RunTable]
    missing: tuple[PlanRegion, ...]


def planned_tables(
    memory: Sequence[PlanRegion], stats: PageCounts, node_of: Ints, machine: Machine
) -> PlannedTables:
    """node_of: (N,) position of each thread's node, for pages that an entry leaves to first touch."""
    entries = _Entries(memory)
    order = np.argsort(stats.region, kind="stable")
    borders = np.searchsorted(stats.region[order], np.arange(len(stats.regions) + 1))
    tables: dict[int, RunTable] = {}
    there: set[int] = set()
    for number, key in enumerate(stats.regions):
        entry = entries.of(key)
        if entry is None:
            continue
        there.add(id(entry))
        rows = order[borders[number] : borders[number + 1]]
        table = _table(entry, key, stats, rows, node_of, machine)
        if table is not None:
            tables[number] = table
    missing = tuple(one for one in memory if one.region.kind != "stack" and id(one) not in there)
    return PlannedTables(tables, missing)


class _Entries:
    """A plan's entries, by what they are for."""

    def __init__(self, memory: Sequence[PlanRegion]) -> None:
        self._single: dict[RegionKey, PlanRegion] = {}
        self._rules: dict[Site, list[PlanRegion]] = defaultdict(list)
        for entry in memory:
            if entry.rule:
                self._rules[site_of(_same(entry.region))].append(entry)
            elif entry.region.kind != "stack":
                self._single.setdefault(_same(entry.region), entry)

    def of(self, key: RegionKey) -> PlanRegion | None:
        """What the plan says of a region."""
        single = self._single.get(_same(key))
        if single is not None:
            builds = {single.region.build_id, key.build_id} - {""}
            return None if key.kind == "static" and len(builds) > 1 else single
        for entry in self._rules.get(site_of(_same(key)), ()):
            rule = entry.rule
            if rule and rule.least <= key.bytes and (rule.most is None or key.bytes <= rule.most):
                return entry
        return None


def _same(key: RegionKey) -> RegionKey:
    """What is the same of a region in every run."""
    thread = "" if key.kind == "static" else key.thread
    return msgspec.structs.replace(key, bytes=0, build_id="", thread=thread)


def _table(
    entry: PlanRegion, key: RegionKey, stats: PageCounts, rows: Ints, node_of: Ints, machine: Machine
) -> RunTable | None:
    """None: the entry leaves the region to first touch."""
    runs, nodes = entry.runs_of(key.bytes), len(machine.nodes)
    homes = [machine.index_of_node(run.node) for run in runs]
    if not runs or (entry.policy == "next-touch" and stats.team is None):  # nobody comes next
        return None
    if entry.policy == "interleave":
        pages, among = np.array([0, -(-key.bytes // PAGE)]), tuple(sorted(set(homes)))
        return RunTable(key, pages, np.zeros((1, nodes)), np.array([among[0]]), among)
    starts, ends = (
        np.array(part) for part in zip(*((r.offset, r.offset + r.bytes) for r in runs), strict=True)
    )
    beyond = rows[_outside(stats.page[rows] * PAGE, starts, ends)]
    pages, first = np.unique(stats.page[beyond], return_index=True)
    begins = np.concatenate([-(-starts // PAGE), pages])
    home = np.concatenate([homes, _touched(stats, beyond[first], node_of)]).astype(np.int64)
    turn = np.argsort(begins, kind="stable")
    last = max(-(-key.bytes // PAGE), int(begins.max()) + 1)
    return RunTable(
        key,
        np.append(begins[turn], last),
        np.zeros((len(home), nodes)),
        home[turn],
        next_touch=entry.policy == "next-touch",
    )


def _outside(offsets: Ints, starts: Ints, ends: Ints) -> NDArray[np.bool_]:
    """Which offsets no run has."""
    run = np.searchsorted(starts, offsets, side="right") - 1
    answer: NDArray[np.bool_] = (run < 0) | (offsets >= ends[run])
    return answer


def _touched(stats: PageCounts, rows: Ints, node_of: Ints) -> Ints:
    """Where the pages of these rows are touched first; with who uses them where that is not known."""
    thread = stats.thread[rows] if stats.toucher is None else stats.toucher[rows]
    thread = np.where((thread >= 0) & (thread < len(node_of)), thread, stats.thread[rows])
    return node_of[np.clip(thread, 0, len(node_of) - 1)]
