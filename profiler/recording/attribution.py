"""Find the owner: the interval (a region's addresses, a thread's time) that held a key at a time.

Regions come and go at the same addresses, and tids come back, so a lookup takes a position and a time.
Positions are cut at every border into elementary pieces; within one, intervals are told apart by time.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..identity.records import RegionRecord

FOREVER = np.iinfo(np.int64).max


class IntervalIndex:
    """Intervals [start, end) x [born, died); where two overlap the one born last wins.

    start, end: uint64 positions; born, died: int64 times (died < 0 means never). The answer of `find` is the
    row number of the interval, -1 where there is none. Building takes O(n log n + covered pieces).
    """

    def __init__(self, start: ArrayLike, end: ArrayLike, born: ArrayLike, died: ArrayLike) -> None:
        first = np.asarray(start, np.uint64)
        last = np.asarray(end, np.uint64)
        birth = np.asarray(born, np.int64)
        death = np.where(np.asarray(died, np.int64) < 0, FOREVER, np.asarray(died, np.int64))
        rows = np.flatnonzero((last > first) & (death > birth))
        self._borders = np.unique(np.concatenate([first[rows], last[rows]]))
        low = np.searchsorted(self._borders, first[rows])
        high = np.searchsorted(self._borders, last[rows])
        pieces = _ranges(low, high)
        owners = np.repeat(rows, high - low)
        self._times = np.unique(birth[rows])
        order = np.lexsort((owners, birth[owners], pieces))
        self._owners = owners[order]
        self._death = death[self._owners]
        rank = np.searchsorted(self._times, birth[self._owners])
        self._keys = pieces[order] * self._stride + rank
        self._previous = _enclosing(pieces[order], self._death)

    @property
    def _stride(self) -> int:
        return len(self._times) + 1

    def find(self, position: NDArray[Any], time: NDArray[Any]) -> NDArray[np.int32]:
        """Row of the interval that holds each (position, time), -1 where none does; equally long arrays."""
        answer = np.full(len(position), -1, np.int32)
        if not len(self._keys):
            return answer
        piece = np.searchsorted(self._borders, position.astype(np.uint64), side="right") - 1
        rank = np.searchsorted(self._times, time, side="right") - 1
        place = np.searchsorted(self._keys, piece * self._stride + rank, side="right") - 1
        base = piece * self._stride
        at = np.maximum(place, 0)
        good = (piece >= 0) & (rank >= 0) & (place >= 0) & (self._keys[at] >= base)
        wanted = np.flatnonzero(good)
        at = at[wanted]
        # An interval that ended may have been born inside one that goes on: step out to the enclosing one.
        while len(wanted):
            alive = self._death[at] > time[wanted]
            answer[wanted[alive]] = self._owners[at[alive]]
            wanted, at = wanted[~alive], self._previous[at[~alive]]
            wanted, at = wanted[at >= 0], at[at >= 0]
        return answer


class RegionFinder:
    """Which region held an address of a process at a time.

    What is left of the heap is taken for that only where no other region was: also in a part of a run, where
    all that was there before is born at 0.
    """

    def __init__(self, regions: Sequence[RegionRecord]) -> None:
        rows: dict[int, list[int]] = {}
        for row in sorted(range(len(regions)), key=lambda row: regions[row].kind != "small"):
            rows.setdefault(regions[row].pid, []).append(row)
        self._rows = {pid: np.array(numbers, np.int32) for pid, numbers in rows.items()}
        self._index = {
            pid: IntervalIndex(
                np.array([regions[row].start_addr for row in numbers], np.uint64),
                np.array([regions[row].start_addr + regions[row].bytes for row in numbers], np.uint64),
                [regions[row].start_ns for row in numbers],
                [regions[row].end_ns for row in numbers],
            )
            for pid, numbers in rows.items()
        }

    def find(
        self, pids: NDArray[np.int32], addr: NDArray[np.uint64], time_ns: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """Region of each access, -1 where its address lies in none; equally long arrays."""
        answer = np.full(len(pids), -1, np.int32)
        if not self._index:
            return answer
        for pid in np.unique(pids).tolist():
            if pid not in self._index:
                continue
            chosen = np.flatnonzero(pids == pid)
            row = self._index[pid].find(addr[chosen], time_ns[chosen])
            answer[chosen] = np.where(row >= 0, self._rows[pid][np.maximum(row, 0)], -1)
        return answer


def _ranges(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """The integers low[i]..high[i]-1 of every i, one after the other."""
    lengths = high - low
    starts = np.repeat(low - np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64), lengths)
    return starts + np.arange(len(starts))


def _enclosing(pieces: NDArray[np.int64], death: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each entry (sorted by piece, birth) the latest earlier one of its piece that outlives it, or -1."""
    previous = np.full(len(pieces), -1, np.int64)
    same = np.flatnonzero(pieces[1:] == pieces[:-1]) + 1
    # Nearly all pieces hold one interval after another; only where times overlap is there anything to walk.
    for entry in same.tolist():
        candidate = entry - 1
        while candidate >= 0 and death[candidate] <= death[entry]:
            candidate = int(previous[candidate])
        previous[entry] = candidate
    return previous
