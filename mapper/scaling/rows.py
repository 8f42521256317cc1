"""The rows of page counts for another number of threads, by what one recording says of its regions."""

from collections import defaultdict
from typing import Any

import msgspec
import numpy as np

from numaplan.analyzer import PageCounts
from numaplan.profiler import RegionKey

from ..threads.problem import Floats, Nodes
from .profiles import source
from .team import Team

PAGE = 4096
CELLS = 64  # of a region whose use follows nobody
TOUCHED = 0.6  # of a region's pages, that one thread must touch first to be the one of all
COUNTS = ("accesses", "writes", "before", "missed", "missed_before")


class Scale(msgspec.Struct, frozen=True):
    """The team of the largest recording, and where its threads are among those of the wanted number.

    members, others: rows of the target's threads.
    """

    team: Team
    members: Nodes
    others: dict[int, int]
    n: int

    def stands_for(self, member: int) -> int:
        """The member of the recording whose part another number's member has."""
        return int(source(np.array(member), self.n, len(self.team)))

    def home_of(self, member: int) -> int:
        """The member that has the part of one of the recording."""
        m = len(self.team)
        if member in (0, m - 1):
            return 0 if member == 0 else self.n - 1
        return min(int((member + 0.5) * self.n / m), self.n - 1)


class PageRows:
    """Rows as they are added, region after region; stats: of the recording, member_of: of its threads."""

    def __init__(self, stats: PageCounts, member_of: Nodes, scale: Scale) -> None:
        self.stats, self.member_of, self.scale = stats, member_of, scale
        self.keys: list[RegionKey] = []
        self.columns: dict[str, list[Any]] = defaultdict(list)
        self.lives: list[Any] = []
        self.sources: dict[RegionKey, str] = {}
        self.unfollowed, self.fixed = set[RegionKey](), set[RegionKey]()

    def add(
        self,
        key: RegionKey,
        number: int,
        rows: Nodes,
        at: Floats,
        thread: Nodes,
        made: Floats,
        copies: int = 1,
    ) -> None:
        """A region of the wanted number: (R,) where in it (0..1) which thread makes how many accesses.

        rows: of the recording, that tell of the rest: writes, misses, who was there before the team started
        and who touched it first; copies: how many regions they are of.
        """
        region, stats = len(self.keys), self.stats
        self.keys.append(key)
        if name := stats.sources.get(stats.regions[number]):
            self.sources[key] = name
        self.lives.append((0, -1) if stats.lives is None else stats.lives[number])
        pages = max(-(-key.bytes // PAGE), 1)
        of_team = self.member_of[stats.thread[rows]] >= 0
        page: Nodes = np.minimum((at * pages).astype(np.int64), pages - 1)
        toucher = self._toucher(rows)
        ratio = {name: _ratio(stats, name, rows[of_team]) for name in ("writes", "missed")}
        values = {"accesses": made, **{name: made * part for name, part in ratio.items()}}
        self._rows(region, page, thread, values, np.where(toucher < 0, thread, toucher))
        for row_page, row_thread, part in self._others(rows, copies, pages):
            self._rows(region, row_page, row_thread, part, np.where(toucher < 0, row_thread, toucher))

    def _others(self, rows: Nodes, copies: int, pages: int) -> list[tuple[Nodes, Nodes, dict[str, Floats]]]:
        """Rows of threads that are no members, and of what all did before; evenly over the region's pages."""
        stats = self.stats
        thread = stats.thread[rows]
        target = np.array([self._thread(number) for number in thread.tolist()], np.int64)
        made = {
            name: np.asarray(getattr(stats, name)[rows], np.float64)
            for name in COUNTS
            if getattr(stats, name) is not None
        }
        outside = self.member_of[thread] < 0
        result = []
        for names, kept in (
            (("before", "missed_before"), np.ones(len(rows), bool)),
            (("accesses", "writes", "missed"), outside),
        ):
            who = np.unique(target[kept])
            cell = np.unique(np.linspace(0, pages - 1, min(pages, CELLS)).astype(np.int64))
            page, thread_of = (axis.ravel() for axis in np.meshgrid(cell, who, indexing="ij"))
            values: dict[str, Floats] = {}
            for name in names:
                if name in made:
                    sums = np.array([float(made[name][kept & (target == one)].sum()) for one in who])
                    values[name] = np.tile(sums / (len(cell) * copies), len(cell))
            result.append((page, thread_of, values))
        return result

    def _rows(
        self, region: int, page: Nodes, thread: Nodes, values: dict[str, Floats], toucher: Nodes
    ) -> None:
        kept = np.zeros(len(page), bool)
        for part in values.values():
            kept |= part > 0
        self.columns["region"].append(np.full(int(kept.sum()), region))
        for name, where in (("page", page), ("thread", thread), ("toucher", toucher)):
            self.columns[name].append(np.asarray(where, np.int64)[kept])
        for name in COUNTS:
            self.columns[name].append(values[name][kept] if name in values else np.zeros(int(kept.sum())))

    def _toucher(self, rows: Nodes) -> int:
        """The row of the thread that touches all of a region first; -1: who uses it does."""
        found = self.stats.toucher
        if found is None or not len(rows):
            return -1
        touchers, counts = np.unique(found[rows], return_counts=True)
        most = int(touchers[counts.argmax()])
        member = int(self.member_of[most])
        fixed = member < 0 or (member == 0 and self.scale.team.leads)
        return self._thread(most) if fixed and counts.max() >= TOUCHED * len(rows) else -1

    def _thread(self, number: int) -> int:
        """The row of a recorded thread, with the wanted number of them."""
        if number < 0:
            return -1
        member = int(self.member_of[number])
        return (
            self.scale.others[number] if member < 0 else int(self.scale.members[self.scale.home_of(member)])
        )

    def together(self) -> PageCounts:
        """The page counts, each page of a thread once."""
        columns = {name: np.concatenate(parts) for name, parts in self.columns.items()}
        names = ("region", "page", "thread", "toucher")
        keys: list[Nodes] = [columns.get(name, np.zeros(0)).astype(np.int64) for name in names]
        order = np.lexsort((keys[2], keys[1], keys[0]))
        keys = [key[order] for key in keys]
        new = np.append(True, (np.diff(keys[0]) != 0) | (np.diff(keys[1]) != 0) | (np.diff(keys[2]) != 0))
        starts = np.flatnonzero(new) if len(order) else np.zeros(0, np.int64)

        def summed(name: str) -> Floats:
            values: Floats = columns.get(name, np.zeros(0))[order]
            return np.add.reduceat(values, starts) if len(starts) else values

        counts: dict[str, Any] = {
            name: summed(name) for name in COUNTS if getattr(self.stats, name) is not None
        }
        region, page, thread, toucher = (key[starts] for key in keys)
        return PageCounts(
            regions=self.keys,
            region=region,
            page=page,
            thread=thread,
            toucher=toucher if self.stats.toucher is not None else None,
            period=self.stats.period,
            exact=self.stats.exact,
            sources=self.sources,
            unfollowed=frozenset(self.unfollowed),
            fixed=frozenset(self.fixed),
            lives=np.array(self.lives, np.int64).reshape(-1, 2),
            **counts,
        )


def _ratio(stats: PageCounts, name: str, rows: Nodes) -> float:
    """Of the accesses of some rows, those that are of a kind."""
    part, made = getattr(stats, name), float(stats.accesses[rows].sum())
    return 0.0 if part is None or made <= 0 else float(part[rows].sum()) / made
