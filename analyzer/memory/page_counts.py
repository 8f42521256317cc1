"""Accesses counted by page: what regions, false sharing, reports and the planner are told.

The counting is in `page_counting.py`; a plan without a trace needs the type alone.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import RegionKey

PAGE = 4096
PRIOR = 4.0  # misses of a row below which its group tells more of its rate than the row itself
DATA_KINDS = ("static", "heap", "mmap", "file", "small", "other")

RESTACKED = "restacked"  # a change: may be less than nothing
# (N, N) each, of memory that is in no region of its own.
BY_PAIRS = ("elsewhere", "elsewhere_missed", "elsewhere_pages", "elsewhere_shared", "small", RESTACKED)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Counts = NDArray[np.int64] | NDArray[np.float64]


class PageCounts(msgspec.Struct, frozen=True):
    """Accesses counted by (region, page, thread, phase), in that order; equally long arrays.

    regions: what each number in `region` stands for; page: offset in the region // 4096; accesses, writes:
    samples, those of an event that was sampled more seldom count as many of the one sampled most often as
    they stand for; toucher: the thread seen on the page first of all, -1 or None: not known; before: further
    accesses, from before the threads start: they say nothing of who will use the page, but they are made;
    phase: number of the phase of the run (None: one); teams: of each phase, the team of threads that it is
    of (None: one); elsewhere: (N, N) accesses of each thread to memory of other regions, by the thread that
    touched its page first; period: accesses that one count stands for; first_ns: time of the page's first
    sample; lives: (regions, 2) ns when each was made and went, -1: it stayed (None: not known); missed,
    missed_before: those of accesses and of before that no cache answered (None: not known);
    elsewhere_missed: (N, N) those of elsewhere; elsewhere_pages: (N, N) pages of it, by who uses them and who
    touched them first; elsewhere_shared: (N, N) the same pages by two accesses to one: each page counts once,
    as its accesses are divided; small: of elsewhere, what is to small blocks of the heap;
    restacked: (N, N) how elsewhere changes where each thread's stack is as if it had touched that first;
    exact: whether all accesses were counted by page, and not sampled (period is 1 then); sources: what the
    source calls a region, where that is known; unfollowed: regions of which other numbers of threads were
    recorded than are counted here, which do not tell who uses which page; fixed: regions of which the same is
    known, and that threads use in parts that keep their size.
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
    elsewhere: Floats | None = None
    period: int = 1
    first_ns: Ints | None = None
    lives: Ints | None = None
    missed: Counts | None = None
    missed_before: Counts | None = None
    elsewhere_missed: Floats | None = None
    elsewhere_pages: Floats | None = None
    elsewhere_shared: Floats | None = None
    small: Floats | None = None
    restacked: Floats | None = None
    exact: bool = False
    sources: Mapping[RegionKey, str] = {}
    unfollowed: frozenset[RegionKey] = frozenset()
    fixed: frozenset[RegionKey] = frozenset()

    def __len__(self) -> int:
        return len(self.region)

    @property
    def all_accesses(self) -> Counts:
        """Accesses with those from before the threads start."""
        return self.accesses if self.before is None else self.accesses + self.before

    @property
    def memory_accesses(self) -> tuple[Floats, Floats] | None:
        """(rows,) accesses to memory among `accesses`, and among `before`; None: not known.

        Misses are few where samples are: of each row they are what its thread's accesses to its region are
        expected to miss, as far as its own samples do not say otherwise.
        """
        if self.missed is None or self.missed_before is None:
            return None
        if self.exact:
            return self.missed.astype(np.float64), self.missed_before.astype(np.float64)
        begun = 0 * self.accesses if self.before is None else self.before
        return self._expected(self.accesses, self.missed), self._expected(begun, self.missed_before)

    def _expected(self, made: Counts, missed: Counts) -> Floats:
        """(rows,) misses by the rate of each (region, thread) and by the row's own (gamma-Poisson)."""
        groups = int(self.thread.max(initial=-1)) + 2
        cell = self.region * groups + self.thread + 1
        all_made, all_missed = (np.bincount(cell, part).astype(np.float64) for part in (made, missed))
        rate = np.divide(all_missed, all_made, out=np.zeros_like(all_made), where=all_made > 0)[cell]
        answer: Floats = rate * (missed + PRIOR) / np.maximum(rate * made + PRIOR, 1e-300) * made
        total = np.bincount(cell, answer).astype(np.float64)  # of no rows it counts in integers
        scale = np.divide(all_missed, total, out=np.zeros_like(total), where=total > 0)
        scaled: Floats = answer * scale[cell]
        return scaled

    @property
    def team(self) -> Ints | None:
        """Of each row, the team of threads that made it; None: there is one."""
        return None if self.phase is None or self.teams is None else self.teams[self.phase]

    @property
    def page_number(self) -> Ints:
        """(rows,) a number for each (region, page), ascending."""
        new = (np.diff(self.region, prepend=-1) != 0) | (np.diff(self.page, prepend=-1) != 0)
        return np.cumsum(new) - 1
