"""Which region of memory a page is of; several regions may have parts of one."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..identity.records import RegionRecord
from .attribution import RegionFinder

PAGE_SHIFT = 12
PAGE = 1 << PAGE_SHIFT
SEVERAL = -2  # regions, so that only samples tell whose an access is

Ints = NDArray[np.int64]


class PageRegions:
    """Of a recording; finder: by address, of the same regions."""

    def __init__(self, regions: Sequence[RegionRecord], finder: RegionFinder) -> None:
        self._finder = finder
        self._stacks = np.array(
            [row for row, region in enumerate(regions) if region.kind == "stack"], np.int32
        )
        borders: dict[int, dict[int, int]] = {}
        for row, region in enumerate(regions):
            own, end = borders.setdefault(region.pid, {}), region.start_addr + region.bytes
            for at in (region.start_addr, end):
                if at % PAGE and region.bytes:
                    page = at >> PAGE_SHIFT
                    own[page] = row if own.get(page, row) == row else SEVERAL
        self._borders = {
            pid: np.array(sorted(own.items()), np.int64).reshape(-1, 2) for pid, own in borders.items()
        }

    def in_stack(self, region: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether each of these regions is a stack. Its pages are its thread's, though of all that was there
        before a part the main thread may be said to have touched it first."""
        return np.isin(region, self._stacks)

    def find(
        self, pid: int, addr: NDArray[np.uint64], times: Sequence[Ints], late: Sequence[Ints] = ()
    ) -> NDArray[np.int32]:
        """Of each page's address, -1 for none, SEVERAL where there are; times: at which, by preference; late:
        of what is in none, times at which one may only be told to be there."""
        number = np.full(len(addr), pid, np.int32)
        found = np.full(len(addr), -1, np.int32)
        for time in (*times, *late):
            missing = np.flatnonzero(found < 0)
            found[missing] = self._finder.find(number[missing], addr[missing], time[missing])
        table = self._borders.get(pid, np.empty((0, 2), np.int64))
        if not len(table) or not len(addr):
            return found
        page = (addr >> np.uint64(PAGE_SHIFT)).astype(np.int64)
        place = np.minimum(np.searchsorted(table[:, 0], page), len(table) - 1)
        rows = np.flatnonzero(table[place, 0] == page)
        region = table[place[rows], 1]
        last = self._finder.find(number[rows], addr[rows] + np.uint64(PAGE - 1), times[-1][rows])
        for other in (found[rows], last):
            region = np.where((other >= 0) & (other != region), SEVERAL, region)
        found[rows] = region
        return found
