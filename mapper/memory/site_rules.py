"""One rule for all the blocks that a thread allocates at one place in the code, where they are used alike.

Memory that comes and goes, such as temporaries of each time step, has another number of blocks in every run.
Homes by block would name those of the recorded run only. A rule says where the parts of such a block belong,
whatever its size and however many there are; blocks that are used in another way than most keep their own.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts
from numaplan.profiler import RegionKey

from ..plan_file.parts import Blocks
from .lives import most_at_a_time, order_of_lives
from .run_table import CHANCE, FEW_RUNS, PAGE, SPREAD, RunTable, Spread, counts_by_node, homes, make_table

KINDS = ("heap", "mmap")
DIFFERENT = 0.1  # of a block's accesses that its own homes would make local beyond the rule's
MOST = 0.5  # more of the blocks of a class must be used alike, so that the next is probably, too
BY_ROW = ("region", "page", "thread", "accesses", "writes")  # of the counts that homes depend on

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Counts = Ints | Floats


class Site(NamedTuple):
    """Where in the code which thread allocates: what regions have in common but for size and sequence."""

    process: str
    kind: str
    name: str
    build_id: str
    thread: str


def site_of(key: RegionKey) -> Site:
    """A region's."""
    return Site(key.process, key.kind, key.name, key.build_id, key.thread)


class SiteRule(msgspec.Struct, frozen=True):
    """One rule: its homes, in pages of the largest block, and the regions (numbers) that it is for."""

    table: RunTable
    members: Ints


def table_of_block(table: RunTable, key: RegionKey) -> RunTable:
    """What a rule's table says of one block."""
    ours, largest = (-(-size // PAGE) for size in (key.bytes, table.key.bytes))
    return replace(table, key=key, first=-(-table.first * ours // largest), blocks=None, copies=1.0)


def site_rules(
    stats: PageCounts, node_of: Ints, column: Mapping[int, int], spread: Spread = "reads"
) -> list[SiteRule]:
    """The rules that the counts allow, by call site and thread and, where sizes differ, by class of size.

    node_of: (N,) position of each thread's node; column: position of each node; spread: as for `make_table`.
    """
    sites: dict[Site, list[int]] = defaultdict(list)
    for number, key in enumerate(stats.regions):
        if key.kind in KINDS and "+0x" in key.name and key not in stats.unfollowed:
            sites[site_of(key)].append(number)
    several = {site: numbers for site, numbers in sites.items() if len(numbers) > 1}
    if not several:
        return []
    blocks = _Blocks(stats, node_of, column, spread)
    return [rule for numbers in several.values() for rule in _rules_of_site(blocks, numbers)]


def _rules_of_site(blocks: "_Blocks", numbers: Sequence[int]) -> list[SiteRule]:
    """One for all sizes, else one for each class of sizes (from a power of two to the next) that allows it.

    Where every class has one, sizes between and beyond go with the next smaller class: another input makes
    others. Where some has none, nothing is known of sizes that were not seen.
    """
    whole = blocks.rule(numbers, 0, None)
    if whole is not None:
        return [whole]
    classes: dict[int, list[int]] = defaultdict(list)
    for number in numbers:
        classes[_class_of(blocks.stats.regions[number])].append(number)
    sizes = sorted(classes)
    if len(sizes) == 1:
        return []
    strict = [(1 << size, (2 << size) - 1) for size in sizes]
    found = [blocks.rule(classes[size], *limits) for size, limits in zip(sizes, strict, strict=True)]
    rules = [rule for rule in found if rule is not None]
    if len(rules) < len(sizes):
        return rules
    starts = [0, *(1 << size for size in sizes[1:])]
    ends = [*(start - 1 for start in starts[1:]), None]
    return [_for_sizes(*each) for each in zip(rules, starts, ends, strict=True)]


def _class_of(key: RegionKey) -> int:
    return key.bytes.bit_length() - 1


def _for_sizes(rule: SiteRule, least: int, most: int | None) -> SiteRule:
    assert rule.table.blocks is not None
    blocks = replace(rule.table.blocks, least=least, most=most)
    return replace(rule, table=replace(rule.table, blocks=blocks))


def totals_by_entry(stats: PageCounts, counts: Counts, rules: Iterable[SiteRule]) -> Floats:
    """(regions,) sums of counts (rows,) by region, those of a rule's members at the first of them."""
    unit = np.arange(len(stats.regions))
    for rule in rules:
        unit[rule.members] = rule.members[0]
    return np.asarray(np.bincount(unit[stats.region], counts, len(unit)), np.float64)


def tables_by_region(
    stats: PageCounts, tables: Mapping[int, RunTable], rules: Mapping[int, SiteRule]
) -> dict[int, RunTable]:
    """The homes of each region that has some, by itself or by a rule."""
    found = {number: table for number, table in tables.items() if number not in rules}
    for number in tables.keys() & rules.keys():
        for member in rules[number].members.tolist():
            found[member] = table_of_block(tables[number], stats.regions[member])
    return found


class _Cells(msgspec.Struct):
    """Pages of several blocks: (C,) block, page, and page of the largest block; (C, nodes) accesses.

    In order of blocks and pages.
    """

    block: Ints
    page: Ints
    place: Ints
    counts: Floats

    def at_home(self, table: RunTable) -> Floats:
        """(blocks,) accesses that the homes of a rule make local."""
        if table.interleave:
            return SPREAD * self.totals()  # none that has a home more than that
        counts = self.counts[np.arange(len(self.counts)), table.homes_of(self.place)]
        return self._by_block(self.block, counts)

    def totals(self) -> Floats:
        """(blocks,) accesses."""
        return self._by_block(self.block, self.counts.sum(axis=1))

    def _by_block(self, block: Ints, values: Floats) -> Floats:
        return np.asarray(np.bincount(block, values, int(self.block.max()) + 1), np.float64)

    def at_own_home(self) -> Floats:
        """(blocks,) accesses that homes of its own would make local, page by page or in larger granules."""
        usual = np.zeros((int(self.block.max()) + 1, self.counts.shape[1]))
        np.add.at(usual, self.block, self.counts)
        most: Floats = usual.max(axis=1)
        block, granule, sums = self.block, self.page, self.counts
        for _ in range(int(self.page.max()).bit_length()):
            home = homes(sums, usual[block].argmax(axis=1))
            most = np.maximum(most, self._by_block(block, sums[np.arange(len(sums)), home]))
            granule = granule >> 1
            new = np.append(True, (np.diff(block) != 0) | (np.diff(granule) != 0))
            edges = np.flatnonzero(new)
            block, granule, sums = block[edges], granule[edges], np.add.reduceat(sums, edges, axis=0)
        return most


class _Blocks:
    """The counts by block."""

    def __init__(self, stats: PageCounts, node_of: Ints, column: Mapping[int, int], spread: Spread) -> None:
        self.stats, self._node_of, self._column, self._spread = stats, node_of, column, spread
        size = np.array([key.bytes for key in stats.regions])
        known = (stats.thread >= 0) & (stats.thread < len(node_of)) & (stats.accesses > 0)
        inside = (stats.page >= 0) & (stats.page * PAGE < size[stats.region])
        self._rows = np.flatnonzero(known & inside)
        self._rows = self._rows[np.argsort(stats.region[self._rows], kind="stable")]
        self._borders = np.searchsorted(stats.region[self._rows], np.arange(len(stats.regions) + 1))

    def rule(self, numbers: Sequence[int], least: int, most: int | None) -> SiteRule | None:
        """The rule for these blocks; None where most are not used alike, or fewer than two are used."""
        used = [number for number in numbers if self._borders[number] < self._borders[number + 1]]
        if len(used) < 2:
            return None
        rows = np.concatenate([self._rows[slice(*self._borders[number : number + 2])] for number in used])
        keys = [self.stats.regions[number] for number in used]
        largest = replace(max(keys, key=lambda key: key.bytes), sequence=None)
        cells = self._cells(rows, np.array([-(-key.bytes // PAGE) for key in keys]))
        writes = float(self.stats.writes[rows].sum()) / float(self.stats.accesses[rows].sum())
        made, alone = cells.totals(), cells.at_own_home()
        classes = np.unique([_class_of(key) for key in keys], return_inverse=True)[1]
        slack = np.maximum(DIFFERENT * made, CHANCE * np.sqrt(made))
        # A few busy blocks must not decide for many others.
        for weight in (np.ones(len(used)), made.mean() / made):
            table = _table(largest, cells, weight, writes, self._spread)
            alike = alone - cells.at_home(table) <= slack
            shares = np.bincount(classes, alike) / np.bincount(classes)
            if alike.sum() > 1 and shares.min() > MOST:
                table = _table(largest, cells, alike.astype(float), writes, self._spread)
                table.blocks = Blocks(least=least, most=most, seen=len(numbers))
                table.copies = max(1.0, self._live_bytes(numbers) / largest.bytes)
                return SiteRule(table, np.array(used)[alike])
        return None

    def _cells(self, rows: Ints, pages: Ints) -> _Cells:
        """Of some rows, in order of their blocks; pages: of each block."""
        part = replace(self.stats, **{name: getattr(self.stats, name)[rows] for name in BY_ROW})
        block = np.cumsum(np.diff(part.region, prepend=part.region[0]) != 0)
        most = int(pages.max())
        keyed = replace(part, page=block * most + part.page)
        keys, counts = counts_by_node(keyed, np.arange(len(rows)), self._node_of, self._column)
        block, page = np.divmod(keys, most)
        return _Cells(block, page, page * most // pages[block], counts)

    def _live_bytes(self, numbers: Sequence[int]) -> float:
        """How many bytes live at the same time at most; all where that is not known."""
        size = np.array([self.stats.regions[number].bytes for number in numbers], np.float64)
        if self.stats.lives is None:
            return float(size.sum())
        return most_at_a_time(size, order_of_lives(self.stats.lives[list(numbers)]))


def _table(key: RegionKey, cells: _Cells, weight: Floats, writes: float, spread: Spread) -> RunTable:
    """The homes for all blocks together, each counted by its weight; writes: their share of accesses."""
    counts = cells.counts * weight[cells.block, None]
    pages, place = np.unique(cells.place[counts.any(axis=1)], return_inverse=True)
    sums = np.zeros((len(pages), counts.shape[1]))
    np.add.at(sums, place, counts[counts.any(axis=1)])
    return make_table(key, pages, sums, writes * float(sums.sum()), FEW_RUNS, spread)
