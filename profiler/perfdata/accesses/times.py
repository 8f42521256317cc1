"""Which times of a recording are possible: those that damage made are far from all others."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_YEAR_BITS = 55  # of ns: 1.14 years; no recording takes as long
_LAST = (1 << 63) - 1


@dataclass(frozen=True)
class TimeSpan:
    """The year that most accesses are of, with those before and behind it: [start, end].

    first: access in it, NEVER of placing where there is none; outside: accesses that are not in it.
    """

    start: int = 0
    end: int = _LAST
    first: int = _LAST
    outside: int = 0

    def holds(self, time: int) -> bool:
        """Whether a time is possible; 0 and below stand for none."""
        return time <= 0 or self.start <= time <= self.end

    def rows(self, times: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Which times are possible; None: all of this recording are."""
        return (times >= self.start) & (times <= self.end) | (times == 0) if self.outside else None


class TimeCounter:
    """Counts the accesses of each year, block by block."""

    def __init__(self) -> None:
        self._years: dict[int, tuple[int, int]] = {}  # accesses, and the first of them

    def add(self, times: NDArray[np.int64]) -> None:
        """Count a block, which is not empty."""
        first, last = int(times.min()), int(times.max())
        if first >> _YEAR_BITS == last >> _YEAR_BITS:
            self._add(len(times), first)
            return
        years = times >> _YEAR_BITS
        for year in np.unique(years).tolist():
            inside = times[years == year]
            self._add(len(inside), int(inside.min()))

    def _add(self, count: int, first: int) -> None:
        year = first >> _YEAR_BITS
        known, earliest = self._years.get(year, (0, first))
        self._years[year] = known + count, min(first, earliest)

    def span(self) -> TimeSpan:
        """The possible times."""
        if not self._years:
            return TimeSpan()
        usual = max(self._years, key=lambda year: self._years[year][0])
        near = [year for year in self._years if abs(year - usual) <= 1]
        start, end = max(0, usual - 1) << _YEAR_BITS, min(_LAST, (usual + 2 << _YEAR_BITS) - 1)
        outside = sum(count for year, (count, _first) in self._years.items() if year not in near)
        return TimeSpan(start, end, min(self._years[year][1] for year in near), outside)
