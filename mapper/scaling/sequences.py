"""Which of a thread's large blocks a region is with another number of threads, and how large it is then.

Where a program makes a block for each thread, the blocks after these come later. Both numbers are followed
as a straight line through the recordings, where there is one through whole numbers.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.profiler import RegionKey

from ..threads.problem import Nodes
from .team import Team
from .use import Use

PAGE = 4096
Site = tuple[str, ...]
EXACT = 1e-6
LARGEST = 1 << 50  # bytes


def same_place(key: RegionKey) -> Site:
    """What regions have in common that one thread makes at one place in the code."""
    return key.process, key.thread, key.kind, key.name, key.build_id


class Recording:
    """What one recording says of memory: its page counts, its team, and the creation paths of its threads."""

    def __init__(self, pages: PageCounts, team: Team, paths: Sequence[str]) -> None:
        self.pages, self.team, self.paths = pages, team, paths

    @cached_property
    def _sites(self) -> dict[Site, list[RegionKey]]:
        found: dict[Site, list[RegionKey]] = defaultdict(list)
        for key in self.pages.regions:
            found[same_place(key)].append(key)
        return {site: sorted(keys, key=lambda key: key.sequence or 0) for site, keys in found.items()}

    @cached_property
    def rows(self) -> list[Nodes]:
        """Rows of the counts of each region."""
        order = np.argsort(self.pages.region, kind="stable")
        borders = np.searchsorted(self.pages.region[order], np.arange(len(self.pages.regions) + 1))
        return [order[a:b] for a, b in pairwise(borders)]

    @cached_property
    def member_of(self) -> Nodes:
        """(threads + 1,) the place of each in the team; -1: it is no member, or not known (the last one)."""
        found = np.full(len(self.paths) + 1, -1)
        found[list(self.team.members)] = np.arange(len(self.team))
        return found

    def use(self, number: int) -> Use:
        """Of a region, by members of the team."""
        rows, size = self.rows[number], self.pages.regions[number].bytes
        member = self.member_of[self.pages.thread[rows]]
        rows, member = rows[member >= 0], member[member >= 0]
        page = self.pages.page[rows]
        at = np.clip((page + 0.5) / max(-(-size // PAGE), 1), 0, 1 - 1e-9)
        return Use(size, len(self.team), at, page, member, self.pages.accesses[rows].astype(np.float64))

    def use_at(self, site: Site, at: int) -> Use | None:
        """Of the at-th region of a place in the code; None where there is none."""
        keys = self.of_site(site)
        return self.use(self._numbers[keys[at]]) if at < len(keys) else None

    @cached_property
    def _numbers(self) -> dict[RegionKey, int]:
        return {key: number for number, key in enumerate(self.pages.regions)}

    def of_site(self, site: Site) -> list[RegionKey]:
        """The regions of a place in the code, in order."""
        return self._sites.get(site, [])


class Sequences:
    """The keys of regions with another number of members."""

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._recordings = recordings

    def key(self, site: Site, at: int, n: int, model: RegionKey) -> RegionKey:
        """Of the at-th region of a place in the code."""
        keys = [(len(one.team), one.of_site(site)) for one in self._recordings]
        known = [(m, own[at]) for m, own in keys if len(own) > at]
        sequence = _followed([(m, key.sequence or 0) for m, key in known], n)
        size = _followed([(m, key.bytes) for m, key in known], n)
        return replace(
            model,
            sequence=model.sequence if sequence is None or sequence < 0 else sequence,
            bytes=size if size is not None and 0 < size < LARGEST else model.bytes,
        )

    def key_in_row(self, site: Site, at: int, n: int, model: RegionKey) -> RegionKey:
        """Of the at-th of regions that there is one of for each member."""
        keys = [(len(one.team), one.of_site(site)) for one in self._recordings]
        first = _followed([(m, own[0].sequence or 0) for m, own in keys if own], n)
        steps = {b - a for _, own in keys for a, b in pairwise([key.sequence or 0 for key in own])}
        if first is None or len(steps) != 1:
            return replace(model, sequence=(model.sequence or 0))
        size = _followed([(m, own[0].bytes) for m, own in keys if own], n)
        return replace(
            model, sequence=first + at * steps.pop(), bytes=model.bytes if not size or size < 0 else size
        )


def _followed(points: Sequence[tuple[int, int]], n: int) -> int | None:
    """The value at n of a straight line through all points; None where they are on none."""
    if not points:
        return None
    m, value = np.array(points, np.float64).T
    if np.ptp(value) == 0:
        return int(value[0])
    if len(points) < 2 or np.ptp(m) == 0:
        return None
    slope, start = np.polyfit(m, value, 1)
    if np.abs(slope * m + start - value).max() > EXACT * max(float(np.abs(value).max()), 1.0):
        return None
    return round(float(slope * n + start))
