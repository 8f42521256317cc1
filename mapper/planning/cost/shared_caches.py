"""What threads miss of the last-level cache that a placement gives them, over what they missed when recorded.

Threads with a cache in common share its room, but for what they use together. With half as much memory in use
by those that a thread shares its cache with now as by those when it was recorded, it misses what a cache of
twice the size would have missed. That is known from recordings by emulation (`llc_misses_at_…`).
"""

from collections.abc import Sequence
from copy import copy

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts

from ...memory.lives import most_at_a_time, order_of_lives
from ...memory.page_moves import pages_in_use
from ...memory.run_table import PAGE
from ...threads.problem import Floats, Nodes
from ...workload.cache_use import CacheUse
from ...workload.roles.exchanged import exchanged_vector

EACH = 8  # samples of a thread that a part of a region shows if all its threads use it alike
MOST_PARTS = 256  # of a region
MOST_CELLS = 1 << 24  # parts times threads


class SharedCaches:
    """use: what the threads miss, None: not known; pages: what they use; pools: of exchangeable threads;
    recorded: the same pages as counted, where those of pools stand for several (None: they do not)."""

    def __init__(
        self,
        use: CacheUse | None,
        pages: PageCounts,
        pools: Sequence[Nodes],
        recorded: PageCounts | None = None,
    ) -> None:
        self._use = use
        if use is None:
            return
        self._used, self._bytes, region = _parts(
            pages, len(use.domain), pages if recorded is None else recorded
        )
        self._order = None if pages.lives is None else order_of_lives(pages.lives[region])
        self._recorded = exchanged_vector(self._footprints(use.domain) * (use.domain >= 0), pools)
        columns = [exchanged_vector(missed, pools) for missed in use.missed.T]
        self._missed = np.stack(columns, axis=1)

    def smaller(self, times: int) -> "SharedCaches":
        """The same of an input so many times as large, to which caches are so much smaller."""
        other = copy(self)
        if self._use is not None:
            other._use = replace(self._use, own=max(self._use.own // times, 1))
        return other

    def misses(self, places: Nodes) -> Floats:
        """(N,) how often each thread misses its place's cache, over how often it did; places: (N,)."""
        answer = np.ones(len(places))
        if self._use is None:
            return answer
        now = self._footprints(places)
        room = np.divide(self._recorded, now, out=np.ones(len(now)), where=(now > 0) & (self._recorded > 0))
        sizes, own = np.log2(self._use.sizes), float(np.log2(self._use.own))
        for thread, missed in enumerate(self._missed):
            before = float(np.interp(own, sizes, missed))
            if before > 0:
                answer[thread] = float(np.interp(own + np.log2(room[thread]), sizes, missed)) / before
        return answer

    def _footprints(self, group: Nodes) -> Floats:
        """(N,) bytes that are used by the threads of each one's group, at most at a time."""
        answer = np.zeros(len(group))
        for number in np.unique(group):
            members = group == number
            used = np.where(self._used[:, members].any(axis=1), self._bytes, 0.0)
            answer[members] = used.sum() if self._order is None else most_at_a_time(used, self._order)
        return answer


def _parts(pages: PageCounts, threads: int, recorded: PageCounts) -> tuple[NDArray[np.bool_], Floats, Nodes]:
    """(P, N) which threads use which part of all regions, and (P,) bytes in use and region of each; recorded:
    pages each of which is one.

    Parts are as small as the samples allow to tell who uses them. What the main thread does while it is alone
    does not count.
    """
    rows = np.flatnonzero((pages.thread >= 0) & (pages.thread < threads) & (pages.accesses > 0))
    region, thread, count = pages.region[rows], pages.thread[rows], len(pages.regions)
    seen = np.bincount(region, pages.accesses[rows], count)
    users = np.bincount(np.unique(region * threads + thread) // threads, minlength=count)
    size = np.array([key.bytes for key in pages.regions], np.float64)
    most = np.maximum(-(-size // PAGE), 1).astype(np.int64)
    told = np.minimum(seen / (EACH * np.maximum(users, 1)), MOST_PARTS)
    parts = np.clip(told, 1, most).astype(np.int64) * (users > 0)
    if int(parts.sum()) * threads > MOST_CELLS:
        parts = np.minimum(parts, 1)
        parts[np.argsort(-seen, kind="stable")[MOST_CELLS // threads :]] = 0  # those that are used least
        rows = rows[parts[region] > 0]
        region, thread = pages.region[rows], pages.thread[rows]
    first = np.cumsum(parts) - parts
    part = first[region] + np.minimum(pages.page[rows], most[region] - 1) * parts[region] // most[region]
    used = np.zeros((int(parts.sum()), threads), dtype=bool)
    used[part, thread] = True
    owner = np.repeat(np.arange(count), parts)
    # Of much that is reserved little may be in use.
    made = np.bincount(recorded.region, recorded.accesses, count).astype(np.float64)
    in_use = np.minimum(PAGE * pages_in_use(recorded, made), size)
    sharing = np.bincount(owner, used.any(axis=1), count)
    each = np.divide(in_use, sharing, out=np.zeros(count), where=sharing > 0)
    return used, each[owner], owner
