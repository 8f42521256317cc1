"""Which regions of a plan scale: runs that are shares of the region hold for other sizes of it, too.

That is known where each thread uses its part of the region, in order; where all of it is used alike, most by
the threads of one node; and where another recording, with another size of the region, shows the same shares.
Where that shows other shares, a region does not scale, whatever it looks like in one recording. Where threads
have many parts in turn one recording is not enough: several arrays in one block grow with it, but chunks that
are dealt in turn (OpenMP's schedule(static, 4096)) keep their size and become more.
"""

from collections.abc import Collection, Sequence

import msgspec
import numpy as np

from numaplan.analyzer import PageCounts
from numaplan.profiler import RegionKey

from ..plan_file.parts import PlanRegion, Run, Scales
from ..threads.problem import Floats, Nodes
from .units import Units, units_of_region

PAGE = 4096
KINDS = ("heap", "mmap")  # whose size a program chooses
ANOTHER = 1.25  # times as large, from which a region has another size
SAME = 0.9  # of what homes of its own would make local, that shares must, at another size
USER = 0.05  # of the mean of a region's users, below which a thread is none of them
ALIKE = 0.8  # of the accesses of the node that uses a part most, that the region's node must have
PARTS = 4  # of a region that is used alike
COVERED = 0.75  # of a region, up to which pages must have been seen
LOSS = 0.02  # of a region's accesses, that even parts may make remote
TURNS = 2  # that may be two arrays in one block; more are as likely chunks of a fixed size


def with_scales(
    memory: Sequence[PlanRegion],
    stats: PageCounts,
    sizes: Sequence[PageCounts],
    threads: Sequence[tuple[str, str]],
    nodes: Sequence[int],
    away: Collection[RegionKey] = (),
) -> tuple[PlanRegion, ...]:
    """The regions of a plan, with what is known of how they scale.

    stats: what they were placed by; sizes: the same of recordings with other sizes; threads, nodes: (N,)
    process and creation path, and node id, of each thread; away: regions that are not all where they are used
    most, as nodes have no room for more of them: another size has room of its own. Nor do regions scale whose
    parts are known to keep their size (`fixed` of the counts).
    """
    rank = np.argsort(np.argsort([_made(path) for _, path in threads], kind="stable"))
    uses = [_Uses(one, np.asarray(nodes), rank) for one in (stats, *sizes)]
    return tuple(
        _with_scale(entry, uses)
        if entry.rule is None
        and entry.policy in ("bind", "preferred")
        and entry.region.kind in KINDS
        and entry.region not in away
        and entry.region not in stats.fixed
        else entry
        for entry in memory
    )


def _made(path: str) -> int:
    """In which order siblings were made."""
    last = path.rpartition(".")[2]
    return int(last) if last.isdecimal() else 0


class _Use(msgspec.Struct, frozen=True):
    """size: of the region; (R,) at: where in it (0..1), thread: its rank, node, and accesses."""

    size: int
    at: Floats
    thread: Nodes
    node: Nodes
    made: Floats

    def local(self, entry: PlanRegion) -> float:
        """Accesses that the runs of an entry, cut to this size, make local."""
        starts = [run.offset for run in entry.runs]
        run = np.searchsorted(starts, self.at * entry.region.bytes, side="right") - 1
        homes = np.array([run.node for run in entry.runs])[np.maximum(run, 0)]
        return float(self.made[homes == self.node].sum())

    def best(self) -> float:
        """Accesses that homes of each page would make local."""
        pages, page = np.unique((self.at * max(self.size // PAGE, 1)).astype(np.int64), return_inverse=True)
        ids, node = np.unique(self.node, return_inverse=True)
        counts = np.zeros((len(pages), len(ids)))
        np.add.at(counts, (page, node), self.made)
        return float(counts.max(axis=1).sum())


class _Uses:
    """The uses of regions in one recording."""

    def __init__(self, stats: PageCounts, nodes: Nodes, rank: Nodes) -> None:
        self._stats, self._nodes, self._rank = stats, nodes, rank
        self._number = {_but_size(key): number for number, key in enumerate(stats.regions)}
        self._order = np.argsort(stats.region, kind="stable")
        self._borders = np.searchsorted(stats.region[self._order], np.arange(len(stats.regions) + 1))

    def of(self, key: RegionKey) -> _Use | None:
        """Of a region, whatever its size; None where it is not used."""
        number = self._number.get(_but_size(key))
        if number is None:
            return None
        stats, rows = self._stats, self._order[self._borders[number] : self._borders[number + 1]]
        size, thread = stats.regions[number].bytes, stats.thread[rows]
        inside = (thread >= 0) & (thread < len(self._nodes)) & (stats.accesses[rows] > 0)
        rows, thread = rows[inside], thread[inside]
        if not len(rows) or size < PAGE:
            return None
        at = np.clip((stats.page[rows] + 0.5) * PAGE / size, 0, 1 - 1e-9)
        return _Use(
            size, at, self._rank[thread], self._nodes[thread], stats.accesses[rows].astype(np.float64)
        )


def _but_size(key: RegionKey) -> RegionKey:
    return msgspec.structs.replace(key, bytes=0)


def _with_scale(entry: PlanRegion, uses: Sequence[_Uses]) -> PlanRegion:
    use = uses[0].of(entry.region)
    if use is None or not entry.runs:
        return entry
    others = [found for one in uses[1:] if (found := one.of(entry.region)) and _other_size(use, found)]
    if any(other.local(entry) < SAME * other.best() for other in others):
        return entry
    units = _units(use)
    if units is not None and units.turns > TURNS and not others:
        return entry
    if units is not None:
        parts = msgspec.structs.replace(entry, runs=_parts(entry, units, use))
        if use.local(parts) >= use.local(entry) - LOSS * float(use.made.sum()):
            entry = parts
    if others:
        return msgspec.structs.replace(entry, scales=Scales(known="sizes"))
    if units is not None:
        return msgspec.structs.replace(entry, scales=Scales(known="shares"))
    return msgspec.structs.replace(entry, scales=Scales(known="alike")) if _alike(entry, use) else entry


def _other_size(one: _Use, other: _Use) -> bool:
    return max(one.size, other.size) >= ANOTHER * min(one.size, other.size)


def _users(use: _Use) -> Nodes:
    """Ranks of the threads that use a region, in order."""
    made = np.bincount(use.thread, use.made)
    users = np.flatnonzero(made)
    busy: Nodes = users[made[users] >= USER * made[users].mean()]
    return busy


def _units(use: _Use) -> Units | None:
    users = _users(use)
    kept = np.isin(use.thread, users)
    return units_of_region(use.at[kept], np.searchsorted(users, use.thread[kept]), use.made[kept], len(users))


def _parts(entry: PlanRegion, units: Units, use: _Use) -> tuple[Run, ...]:
    """Even parts of the region on the nodes of those whose they are."""
    users = _users(use)
    node_of = {int(thread): int(node) for thread, node in zip(use.thread, use.node, strict=True)}
    owners = [node_of[int(users[member])] for member in units.owners(len(users))]
    size, runs = entry.region.bytes, list[Run]()
    edges = [size * part // len(owners) for part in range(len(owners) + 1)]
    for node, start, end in zip(owners, edges[:-1], edges[1:], strict=True):
        if runs and runs[-1].node == node:
            start = runs.pop().offset
        if end > start:
            runs.append(Run(offset=start, bytes=end - start, node=node))
    return tuple(runs)


def _alike(entry: PlanRegion, use: _Use) -> bool:
    """Whether all parts of a region on one node are used alike, most by threads of that node."""
    whole = len(entry.runs) == 1 and entry.runs[0].bytes == entry.region.bytes
    if not whole or float(use.at.max()) < COVERED:
        return False
    ids, node = np.unique(use.node, return_inverse=True)
    counts = np.zeros((PARTS, len(ids)))
    np.add.at(counts, ((use.at * PARTS).astype(np.int64), node), use.made)
    here = counts[:, ids == entry.runs[0].node].sum(axis=1)
    seen = counts.sum(axis=1) > 0
    # Of two nodes that share all of it either is right.
    return bool((here >= ALIKE * counts.max(axis=1))[seen].all() and seen.sum() >= COVERED * PARTS)
