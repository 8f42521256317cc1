"""Anonymous memory that a process reserved without any access: stacks for threads, and arenas of malloc."""

import bisect
import heapq
from dataclasses import dataclass, replace

from .records import Mapping, ThreadSpan

ARENAS = (64 << 20, 128 << 20)  # what malloc reserves for a thread's small blocks
_MOST_RESERVED = 1 << 16  # of one process; the kernel lets it have about as many mappings
_GUARD = 64 << 10  # at the end of a stack, at most


@dataclass
class Reserved:
    """A piece of it; row: of the region that it became."""

    row: int
    start: int
    end: int


class ReservedMemory:
    """What one program reserved, and which threads took it for their stacks."""

    def __init__(self) -> None:
        self._starts: list[int] = []  # ascending
        self._end_of: dict[int, int] = {}
        self._start_of: dict[int, int] = {}
        self._last_by: dict[int, Reserved] = {}  # the last one that each thread made and nobody took
        self._in_use: list[tuple[int, int, Reserved]] = []  # stacks, by the ends of their threads
        self._free: list[Reserved] = []

    def without_guard(self, one: Mapping) -> Mapping:
        """The mapping without the guard page of a stack above, which is recorded as part of it."""
        above = bisect.bisect_right(self._starts, one.addr)
        if above < len(self._starts) and self._starts[above] < one.addr + one.length:
            return replace(one, length=self._starts[above] - one.addr)
        return one

    def add(self, one: Mapping, row: int) -> None:
        """Take what was reserved, which became the region `row`."""
        if len(self._starts) >= _MOST_RESERVED:
            return
        place = Reserved(row, one.addr, one.addr + one.length)
        if place.start not in self._end_of:
            bisect.insort(self._starts, place.start)
        self._end_of[place.start], self._start_of[place.end] = place.end, place.start
        if one.length not in ARENAS:
            self._last_by[one.tid] = place

    def holds(self, start: int, end: int) -> bool:
        """Whether this is reserved memory made usable: an arena from its start, a stack up to its end."""
        behind = start - self._start_of.get(end, start + 1)
        return end <= self._end_of.get(start, -1) or 0 <= behind <= _GUARD

    def take_stack(self, span: ThreadSpan) -> tuple[Reserved | None, bool]:
        """The stack of a thread that begins: what its maker reserved last, or that of a thread that ended.

        Also whether it was used before.
        """
        while self._in_use and self._in_use[0][0] <= span.start:
            self._free.append(heapq.heappop(self._in_use)[2])
        taken = self._last_by.pop(span.parent_tid, None)
        reused = taken is None and bool(self._free)
        if reused:
            taken = self._free.pop()
        if taken is not None and span.end >= 0:
            heapq.heappush(self._in_use, (span.end, taken.start, taken))
        return taken, reused
