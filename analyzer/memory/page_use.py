"""The table `page_use` of a trace: who used which page how often, where every access was seen."""

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import Trace

from ..samples.region_rules import PROCESS_SHIFT

SEVERAL = -2  # regions have a part of the page: whose an access is, only samples tell
AT_ONCE = 1 << 19  # rows
MOST = 1 << 53  # of a count; beyond it is none
_MOST_TIME = 1 << 62

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class PageUse(msgspec.Struct, frozen=True):
    """Rows of the table that name a thread, equally long arrays; time_ns: the middle of the stretch.

    accesses: loads and stores; missed: -1 where not known.
    """

    time_ns: Ints
    first_ns: Ints
    start_ns: Ints
    end_ns: Ints
    addr: NDArray[np.uint64]
    thread: NDArray[np.int32]
    region: NDArray[np.int32]
    accesses: Floats
    writes: Floats
    missed: Floats

    def __len__(self) -> int:
        return len(self.time_ns)

    def chosen(self, rows: NDArray[np.bool_]) -> "PageUse":
        """Some of the rows."""
        return PageUse(*(getattr(self, name)[rows] for name in self.__struct_fields__))


def has_page_use(trace: Trace) -> bool:
    """Whether all accesses of the program were counted by page."""
    return trace.meta.get("page_use") == "all"


def page_use_pieces(trace: Trace, threads: int) -> Iterator[PageUse]:
    """The rows in order of stretches, about AT_ONCE at a time."""
    for low, high in _spans(trace):
        yield _piece(
            trace.arrays(
                "SELECT start_ns, end_ns, first_ns, thread, region, addr, loads, stores, missed "
                f"FROM page_use WHERE start_ns >= {low} AND start_ns < {high}"
            ),
            threads,
        )


def _spans(trace: Trace) -> Iterator[tuple[int, int]]:
    """Half-open spans of beginnings of stretches with about AT_ONCE rows each, or one stretch."""
    counts = trace.arrays("SELECT start_ns, count(*) AS rows FROM page_use GROUP BY 1 ORDER BY 1")
    starts, rows = counts["start_ns"].astype(np.int64), counts["rows"].astype(np.int64)
    if not len(starts):
        return
    _, first = np.unique((np.cumsum(rows) - rows) // AT_ONCE, return_index=True)
    borders = starts[first].tolist()
    yield from zip(borders, [*borders[1:], int(starts[-1]) + 1], strict=True)


def _piece(found: dict[str, NDArray[np.int64]], threads: int) -> PageUse:
    loads, stores = found["loads"], found["stores"]
    known = (found["thread"] >= 0) & (found["thread"] < threads) & (loads >= 0) & (stores >= 0)
    known &= (loads < MOST) & (stores < MOST) & (found["missed"] < MOST)
    for name in ("start_ns", "end_ns", "first_ns"):
        known &= np.abs(found[name]) < _MOST_TIME
    rows = {name: values[known] for name, values in found.items()}
    return PageUse(
        time_ns=rows["start_ns"] + (rows["end_ns"] - rows["start_ns"]) // 2,
        first_ns=rows["first_ns"].astype(np.int64),
        start_ns=rows["start_ns"].astype(np.int64),
        end_ns=rows["end_ns"].astype(np.int64),
        addr=rows["addr"].astype(np.uint64),
        thread=rows["thread"].astype(np.int32),
        region=rows["region"].astype(np.int32),
        accesses=(rows["loads"] + rows["stores"]).astype(np.float64),
        writes=rows["stores"].astype(np.float64),
        missed=np.maximum(rows["missed"], -1).astype(np.float64),
    )


class SeveralRegions:
    """Pages of which several regions have a part; process: number of each thread's."""

    def __init__(self, process: NDArray[np.uint64]) -> None:
        self._process = process
        self._keys = np.empty(0, np.uint64)

    def add(self, use: PageUse) -> None:
        """Those that are so in some rows."""
        rows = use.region == SEVERAL
        if rows.any():
            self._keys = np.union1d(self._keys, self._of(use.thread[rows], use.addr[rows]))

    def has(self, thread: NDArray[np.int32], addr: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether each address is in one."""
        if not len(self._keys):
            return np.zeros(len(addr), np.bool_)
        keys = self._of(thread, addr)
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        answer: NDArray[np.bool_] = self._keys[place] == keys
        return answer

    def _of(self, thread: NDArray[np.int32], addr: NDArray[np.uint64]) -> NDArray[np.uint64]:
        key: NDArray[np.uint64] = (addr >> np.uint64(12)) ^ (
            self._process[thread] << np.uint64(PROCESS_SHIFT)
        )
        return key
