"""The accesses of a workload that a placement is judged by: what reaches memory, where that is known."""

import math
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts

from ...memory.page_moves import (
    FOLLOWED,
    SMALL_FOLLOWED,
    PageMoves,
    followed_traffic,
    moving_part,
    outside_moves,
    page_moves,
    roaming_moves,
    shared_by_processes,
)
from ...memory.run_table import NO_TABLES, RunTable
from ...memory.site_rules import Site
from ...memory.traffic import first_touches, planned_traffic, touching_pairs
from ...threads.cost import one_hot
from ...threads.problem import Floats, Nodes
from ...workload.roles.exchanged import allocators, exchanged_pages, exchanged_pairs
from .touched_gain import touched_gain

LITTLE = 1e-3  # of all accesses in what decides where pages go, at least
HIT = 1e-5  # of what a miss decides, that any access does: with a larger input it may miss
AS_GOOD = 5e-3  # of all accesses, that regions as good where they are touched first may lose together
OWN_TOUCH = 2.0  # times as often as by chance
SERIAL = 0.1  # of what counts of a thread, made while it was alone, from which on its place matters


class CountedPages:
    """recorded: what was counted; accesses: of any kind; stats: those of them that count; both with threads
    of pools exchanged; tied: threads that keep to their place; staying: of each pool, whether its threads
    come back to their memory. Of one that does not, threads and what was their own are anywhere among its
    nodes, but for the tied. lasted_s: how long the run took, or (N,) each thread's process ran in it, for
    what the kernel moves; ordered: whether a thread can be told from another in the next run, without which
    none keeps to its place; makers: number of each thread that made memory (None: as `threads`)."""

    def __init__(
        self,
        recorded: PageCounts,
        pools: Sequence[Nodes] = (),
        threads: Sequence[tuple[str, str]] = (),
        lasted_s: Floats | float = math.inf,
        *,
        ordered: bool = True,
        makers: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        self.recorded, self._pools = recorded, pools
        self._process = np.unique([process for process, _ in threads], return_inverse=True)[1]
        # (N, N), as what is in no region is told by pairs.
        moving = moving_part(np.broadcast_to(lasted_s, len(threads)))
        self._moving = moving[:, None] * np.equal.outer(self._process, self._process)
        number = {key: thread for thread, key in enumerate(threads)} if makers is None else makers
        self._allocator = allocators(recorded, number)
        self.accesses = exchanged_pages(recorded, pools, self._allocator)
        self.by_memory = recorded.missed is not None and recorded.missed_before is not None
        self.stats, self._stats = _to_memory(self.accesses), _to_memory(recorded)
        self.tied = np.flatnonzero(self._begun_by(SERIAL, len(threads)) & ordered)
        self.staying = [ordered and self._comes_back(pool) for pool in pools]

    @cached_property
    def roaming(self) -> "CountedPages":
        """The same where threads of all pools go from node to node."""
        other = copy(self)
        other.staying = [False] * len(self._pools)
        return other

    @cached_property
    def deciding(self) -> PageCounts:
        """What decides where pages go: accesses, each with the share of it that is expected to count.

        In the unit of accesses, by whose number it is judged what is chance; a little of all accesses decides
        where nothing was seen to miss, and who was there before the others where these use all alike. Where
        next to nothing misses, all accesses decide.
        """
        every, counted = self.accesses, self.stats
        made, counting = float(every.accesses.sum()), float(counted.accesses.sum())
        if counting <= 0 or made <= 0:
            return every
        little = max(LITTLE, HIT * made / (HIT * made + counting))
        weight = counted.accesses * ((1 - little) * made / counting) + little * every.accesses
        if every.before is not None and self._pools:
            weight = weight + LITTLE * every.before
        # Who decides by the share of writes compares them with these.
        share = np.divide(every.writes, every.accesses, out=np.zeros(len(weight)), where=every.accesses > 0)
        return msgspec.structs.replace(every, accesses=weight, writes=share * weight)

    def _begun_by(self, share: float, threads: int) -> NDArray[np.bool_]:
        """(N,) threads of whose accesses at least so much is from before the others started."""
        stats, count = self.stats, threads
        known = stats.thread >= 0
        before = np.zeros(len(stats.thread)) if stats.before is None else stats.before
        made, begun = (
            np.bincount(stats.thread[known], part[known], count) for part in (stats.all_accesses, before)
        )
        return (begun > 0) & (begun >= share * made)

    @cached_property
    def first_touches(self) -> PageCounts:
        """Accesses to pages whose first touch is known, as they were recorded."""
        return first_touches(self.recorded)

    @cached_property
    def _touched(self) -> PageCounts:
        """What counts, of these pages."""
        known, stats = self.first_touches, self._stats
        every = self.recorded.all_accesses
        kept = np.divide(known.all_accesses, every, out=np.zeros(len(every)), where=every > 0)
        before = None if stats.before is None else stats.before * kept
        return msgspec.structs.replace(
            stats, accesses=stats.accesses * kept, before=before, toucher=known.toucher
        )

    def first_touch_traffic(self, rows: Nodes, nodes: int, *, every: bool = False) -> Floats:
        """(N, K) what each thread accesses of each node's memory where that is touched first, and a thread's
        stack is on its node.

        rows: (N,) row of each thread's node; nodes: how many there are; every: accesses of any kind.
        """
        return self._touching(self.first_touches if every else self._touched, {}, rows, nodes, planned=True)

    def kernel_traffic(
        self, rows: Nodes, nodes: int, tables: Mapping[int, RunTable] = NO_TABLES, *, every: bool = False
    ) -> Floats:
        """(N, K) the same where the kernel moves pages to who uses them (AutoNUMA); tables: regions that the
        program places itself."""
        counts = self.first_touches if every else self._touched
        followed = self._followed(counts, len(rows))
        touched = msgspec.structs.replace(counts, accesses=(1 - followed) * counts.accesses)
        if (apart := counts.elsewhere) is not None:
            small = SMALL_FOLLOWED * self._moving * apart
            touched = msgspec.structs.replace(touched, elsewhere=apart - small + np.diag(small.sum(axis=1)))
        moved = msgspec.structs.replace(counts, accesses=followed * counts.accesses)
        traffic = self._touching(touched, tables, rows, nodes, planned=False)
        traffic += followed_traffic(moved, rows, nodes, tables)
        return traffic + self._placed(tables, rows, nodes, every)

    def _followed(self, counts: PageCounts, threads: int) -> Floats:
        """(rows,) share of the accesses that find their page moved."""
        answer = np.zeros(len(counts.thread))
        if counts.toucher is not None:
            known = (counts.thread >= 0) & (counts.thread < threads)
            known &= (counts.toucher >= 0) & (counts.toucher < threads)
            known &= ~shared_by_processes(counts, self._process)
            answer[known] = FOLLOWED * self._moving[counts.thread[known], counts.toucher[known]]
        return answer

    def planned_traffic(
        self, tables: Mapping[int, RunTable], rows: Nodes, nodes: int, *, every: bool = False
    ) -> Floats:
        """(N, K) the same where regions are placed by tables, and the others touched first."""
        recorded = self.recorded if every else self._stats
        touched = self._touching(recorded, tables, rows, nodes, planned=True)
        return touched + self._placed(tables, rows, nodes, every)

    def _placed(self, tables: Mapping[int, RunTable], rows: Nodes, nodes: int, every: bool) -> Floats:
        """(N, K) of the regions that have a table."""
        exchanged = self.accesses if every else self.stats
        placed = msgspec.structs.replace(exchanged, toucher=None, elsewhere=None, restacked=None)
        return planned_traffic(placed, tables, rows, nodes)[0]

    def _touching(
        self, counts: PageCounts, tables: Mapping[int, RunTable], rows: Nodes, nodes: int, planned: bool
    ) -> Floats:
        """What is exchanged but what was before, and what threads do with memory that they allocated."""
        own = counts.thread == self._allocator[counts.region]
        shared = np.where(own, 0.0, counts.accesses)
        pairs = touching_pairs(counts, shared, tables, len(rows))
        if counts.elsewhere is not None:
            pairs += counts.elsewhere
        pairs = exchanged_pairs(pairs, self._pools, self.tied)
        pairs += touching_pairs(counts, counts.all_accesses - shared, tables, len(rows))
        pairs = self._roaming(pairs)
        if planned and counts.restacked is not None:
            pairs += self._restacked(counts.restacked)
        answer: Floats = pairs @ one_hot(rows, nodes)
        return answer

    def _restacked(self, change: Floats) -> Floats:
        """(N, N) the same of threads that keep to a node."""
        staying = [pool for pool, stays in zip(self._pools, self.staying, strict=True) if stays]
        answer = exchanged_pairs(change, staying)
        for pool, stays in zip(self._pools, self.staying, strict=True):
            if not stays:
                answer[np.setdiff1d(pool, self.tied)] = 0.0
        return answer

    def _comes_back(self, pool: Nodes) -> bool:
        """Whether a pool's threads use memory that they touched first much more than by chance."""
        counts = self._stats if self._stats.accesses.any() else self.recorded
        pairs = touching_pairs(counts, counts.accesses, {}, int(pool.max()) + 1)[np.ix_(pool, pool)]
        return bool(np.trace(pairs) * len(pool) > OWN_TOUCH * pairs.sum())

    def near(self, rows: Nodes) -> Floats:
        """(N, N) how likely a thread is on the node where another, or itself, touched memory."""
        return self._roaming(
            exchanged_pairs(np.equal.outer(rows, rows).astype(np.float64), self._pools, self.tied)
        )

    def _roaming(self, pairs: Floats) -> Floats:
        """(N, N) the same where who goes from node to node has left what was its own."""
        answer = pairs.copy()
        for pool, stays in zip(self._pools, self.staying, strict=True):
            free = np.setdiff1d(pool, self.tied)
            if not stays and len(free):
                among = np.ix_(free, free)
                answer[among] = answer[among].mean(axis=1, keepdims=True)
        return answer

    def page_moves(self, rows: Nodes, nodes: int, stays: float = 1.0, but: Collection[int] = ()) -> PageMoves:
        """By the kernel, when threads are on these rows for so much of the time, else on any of the nodes;
        but: regions that it leaves where they are."""
        stats = self.first_touches
        if but:
            left = ~np.isin(stats.region, list(but))
            before = None if stats.before is None else stats.before * left
            stats = msgspec.structs.replace(stats, accesses=stats.accesses * left, before=before)
        held = shared_by_processes(stats, self._process)
        return page_moves(stats, self._staying(rows, nodes, stays), rows, nodes, held)

    def _staying(self, rows: Nodes, nodes: int, stays: float) -> Floats:
        """(N, N) how likely no page moves for the one's access to what the other touched."""
        near = stays * self.near(rows) + (1 - stays) / nodes
        answer: Floats = 1 - self._moving * (1 - near)
        return answer

    def roaming_moves(
        self, rows: Nodes, nodes: int, moved: float, stays: float, but: Collection[int] = ()
    ) -> PageMoves:
        """By the kernel, when it moves threads about among so many nodes for so much of the time; one that is
        alone in its process has its memory with it for `stays` of that. The rest is as above."""
        stats = self.recorded
        outside = outside_moves(self.first_touches, self._staying(rows, nodes, stays), rows)
        held = shared_by_processes(stats, self._process) | np.isin(stats.region, list(but))
        alone = np.bincount(self._process)[self._process] == 1
        about = moved * np.where(alone, 1 - stays, 1.0) * self._moving.diagonal()
        moves = roaming_moves(stats, about, nodes, held)
        return PageMoves(outside.pages + moves.pages, outside.lines + moves.lines)

    def better_touched(self, tables: Mapping[int, RunTable], rows: Nodes, nodes: int) -> set[Site]:
        """Sites in the tables of which more is local where they are touched first."""
        gain = self._touched_gain(tables, rows, nodes, every=False)
        return {site for site, much in gain.items() if much > 0}

    def as_good_touched(self, tables: Mapping[int, RunTable], rows: Nodes, nodes: int) -> set[Site]:
        """Sites in the tables of which as much is local where they are touched first; together they lose at
        most AS_GOOD of all accesses, and of those that count."""
        gains = [self._touched_gain(tables, rows, nodes, every=every) for every in (False, True)]
        sites = sorted(gains[0], key=lambda site: -min(gain[site] for gain in gains))
        losses = [np.cumsum([max(-gain[site], 0.0) for site in sites]) for gain in gains]
        return {site for site, *lost in zip(sites, *losses, strict=True) if max(lost) <= AS_GOOD}

    def _touched_gain(
        self, tables: Mapping[int, RunTable], rows: Nodes, nodes: int, *, every: bool
    ) -> dict[Site, float]:
        """By site, of those with tables; every: of accesses of any kind."""
        counts = (self.accesses, self.first_touches) if every else (self.stats, self._touched)
        return touched_gain(*counts, self.near(rows), tables, rows, nodes)

    def whole(self, traffic: Floats) -> Floats:
        """(N, K) the same for all that each thread accesses, where it is not known of some where it is."""
        stats = self.stats
        known = (stats.thread >= 0) & (stats.thread < len(traffic))
        made = np.bincount(stats.thread[known], stats.all_accesses[known], len(traffic))
        if stats.elsewhere is not None:
            made = made + stats.elsewhere.sum(axis=1)
        seen = traffic.sum(axis=1)
        shares = np.full_like(traffic, 1.0 / traffic.shape[1])
        np.divide(traffic, seen[:, None], out=shares, where=seen[:, None] > 0)
        answer: Floats = shares * (np.maximum(made, seen) * stats.period)[:, None]
        return answer


def _to_memory(accesses: PageCounts) -> PageCounts:
    """Those of the accesses that reach memory, where that is known."""
    memory = accesses.memory_accesses
    if memory is None:
        return accesses
    used, begun = memory
    return msgspec.structs.replace(
        accesses,
        accesses=used,
        before=begun,
        elsewhere=accesses.elsewhere_missed,
        restacked=None,  # a stack stays in its thread's cache
    )


def samples_that_count(stats: PageCounts) -> float:
    """How many samples tell of what counts."""
    if stats.missed is None:
        counted, apart = stats.all_accesses, stats.elsewhere
    else:
        counted, apart = stats.missed, stats.elsewhere_missed
    return float(counted.sum()) + (0.0 if apart is None else float(apart.sum()))
