"""One region cut into runs: which pages have one home, how many runs a region may have, who uses each."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts
from numaplan.profiler import RegionKey

from ..plan_file.parts import Blocks

PAGE = 4096
READ_MOSTLY = 0.05  # share of writes below which replicated reading is what counts
SPREAD = 0.6  # a page is everybody's when no node has more than this share of its accesses
STRAY = 0.25  # of an even share of a region's accesses, below which a node has no part in interleaving it
FEW_RUNS = 64  # that a region may have for whatever they gain
MUCH = 0.05  # share of a region's accesses that must become local for more than that
CHANCE = 2.0  # standard errors by which a page's home must beat the region's, or the page stays with it

Spread = Literal["reads", "shared", "all"]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class RunTable(msgspec.Struct):
    """One region cut into runs: first[i]..first[i+1] pages on home[i]; accesses: (R, nodes) of each run.

    interleave: the nodes that share the region equally, instead of homes; next_touch: left to who comes next;
    blocks: all that this is a rule for, of which `copies` times the key's bytes live at the same time;
    away: some of it is not where it is used most, for room or bandwidth.
    """

    key: RegionKey
    first: Ints  # (R + 1,) page numbers; the last is the region's end
    accesses: Floats
    home: Ints
    interleave: tuple[int, ...] = ()
    next_touch: bool = False
    blocks: Blocks | None = None
    copies: float = 1.0
    away: bool = False

    def bytes_of(self) -> Ints:
        """Memory that each run takes."""
        sizes = np.minimum(self.first[1:] * PAGE, self.key.bytes) - self.first[:-1] * PAGE
        return (sizes * self.copies).astype(np.int64) if self.copies > 1 else sizes

    def homes_of(self, pages: Ints) -> Ints:
        """(P,) home of each page of the region."""
        run = np.searchsorted(self.first[:-1], pages, side="right") - 1
        return self.home[np.clip(run, 0, len(self.home) - 1)]


NO_TABLES: Mapping[int, RunTable] = MappingProxyType({})


def counts_by_node(
    stats: PageCounts, rows: Ints, node_of: Ints, column: Mapping[int, int]
) -> tuple[Ints, Floats]:
    """The region's pages that were seen, ascending, and their accesses by node (P, nodes)."""
    pages, place = np.unique(stats.page[rows], return_inverse=True)
    counts = np.zeros((len(pages), len(column)))
    np.add.at(counts, (place, node_of[stats.thread[rows]]), stats.accesses[rows])
    return pages, counts


def make_table(
    key: RegionKey, pages: Ints, counts: Floats, writes: float, max_runs: int, spread: Spread = "reads"
) -> RunTable:
    """Runs of one region; pages: (P,) ascending; counts: (P, nodes) accesses; writes: of all of them.

    spread: what is interleaved among the nodes that use it: what many read and hardly anyone writes, all
    that many use alike, or everything.
    """
    ends = -(-key.bytes // PAGE)
    if spread == "all" or _shared_reading(counts, 0.0 if spread == "shared" else writes):
        users = _users(counts.sum(axis=0))
        return RunTable(
            key, np.array([0, ends]), counts.sum(axis=0, keepdims=True), np.array([users[0]]), users
        )
    first, totals = _merge(pages, counts, max_runs)
    return RunTable(key, np.append(first, ends), totals, totals.argmax(axis=1))


def _users(made: Floats) -> tuple[int, ...]:
    """Nodes that use a region, but for those that hardly do; made: (nodes,) accesses."""
    even = made.sum() / np.count_nonzero(made)
    return tuple(np.flatnonzero(made >= STRAY * even).tolist())


def _shared_reading(counts: Floats, writes: float) -> bool:
    """Whether most accesses of a region are to pages that many nodes read and hardly anyone writes."""
    totals = counts.sum(axis=1)
    everybodys = counts.max(axis=1) <= SPREAD * totals
    busy = totals[everybodys].sum() > totals.sum() / 2
    return bool(busy and writes <= READ_MOSTLY * totals.sum())


def homes(counts: Floats, usual: Ints | None = None) -> Ints:
    """(P,) the node that uses each page most; the region's own (`usual`) where that may be chance.

    A page of two equal users would change sides with every recording, cost a run, and promise more than any
    home can keep (the greater of two noisy numbers).
    """
    if usual is None:
        usual = np.full(len(counts), counts.sum(axis=0).argmax())
    best = counts.argmax(axis=1)
    most, own = (counts[np.arange(len(counts)), node] for node in (best, usual))
    return np.where(most - own > CHANCE * np.sqrt(most + own), best, usual)


def _merge(pages: Ints, counts: Floats, limit: int) -> tuple[Ints, Floats]:
    """First page of each run, and its accesses; pages never seen go with the one before them.

    Pages are judged alone and in granules of ever twice as many: a few samples say nothing of a page, but
    many of its neighbours together do. Taken is the size that keeps most accesses at home in at most
    FEW_RUNS runs, or in more (up to `limit`) where that keeps MUCH more.
    """
    granule, cells, sums = 1, pages, counts
    few = more = (-1.0, 0, pages[:0], counts[:0])  # accesses kept, less runs, and these
    while True:
        home = homes(sums)
        starts = np.flatnonzero(np.append(True, home[1:] != home[:-1]))
        if len(starts) <= limit:
            kept = float(sums[np.arange(len(sums)), home].sum())
            if (kept, -len(starts)) > more[:2]:
                more = kept, -len(starts), cells[starts] * granule, np.add.reduceat(sums, starts, axis=0)
            if len(starts) <= FEW_RUNS and (kept, -len(starts)) > few[:2]:
                few = kept, -len(starts), cells[starts] * granule, np.add.reduceat(sums, starts, axis=0)
        if len(cells) == 1:
            break
        edges = np.flatnonzero(np.append(True, cells[1:] // 2 != cells[:-1] // 2))
        granule, cells, sums = 2 * granule, cells[edges] // 2, np.add.reduceat(sums, edges, axis=0)
    _, _, first, totals = more if more[0] > few[0] + MUCH * counts.sum() else few
    first[0] = 0
    return first, totals
