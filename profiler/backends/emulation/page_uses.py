"""Who used which page how often, as a plugin counted it (native/page_uses/page_uses.h)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...page_use_block import PageUseBlock
from .filter import SampleFilter
from .spool import ProcessSpool

FILE = "uses"
USE = np.dtype([("key", "<u8"), ("loads", "<u8"), ("stores", "<u8"), ("missed", "<u4"), ("began", "<u4")])
PAGE_SHIFT, TICK_NS = 12, 64
_HEADER, _USED = np.uint64(1 << 63), np.uint64(1 << 62)
_BEFORE = 0xFFFE  # who: the main thread, before the part that is recorded
_AT_ONCE = 1 << 18
_MOST = np.uint64(1 << 62)

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PageUses:
    """Uses of pages by who, each in [start_ns, end_ns) by the plugin's clock; equally long arrays.

    number: of the page; first_ns: of the first use within that time; missed: accesses of these that no
    cache answered.
    """

    number: NDArray[np.uint64]
    who: Ints
    start_ns: Ints
    end_ns: Ints
    first_ns: Ints
    loads: Ints
    stores: Ints
    missed: Ints

    def __len__(self) -> int:
        return len(self.who)

    def chosen(self, rows: NDArray[np.bool_]) -> "PageUses":
        """Some of them."""
        return PageUses(**{name: values[rows] for name, values in vars(self).items()})


def read_page_uses(path: Path, last_ns: int) -> Iterator[PageUses]:
    """What a file holds, a piece at a time; last_ns: when the last stretch of time ended."""
    count = path.stat().st_size // USE.itemsize if path.exists() else 0
    if not count:
        return
    uses = np.memmap(path, USE, "r", 0, (count,))
    headers = np.flatnonzero(uses["key"] == _HEADER)
    borders = np.append(uses["loads"][headers].astype(np.int64), last_ns)
    for first in range(0, count, _AT_ONCE):
        piece = np.array(uses[first : first + _AT_ONCE])
        stretch = np.searchsorted(headers, np.arange(first, first + len(piece)), side="right") - 1
        good = (piece["key"] & _USED > 0) & (stretch >= 0)
        good &= np.maximum(piece["loads"], piece["stores"]) < _MOST
        piece, stretch = piece[good], stretch[good]
        key = piece["key"] & ~_USED
        start, end = borders[stretch], np.maximum(borders[stretch + 1], borders[stretch] + 1)
        yield PageUses(
            key >> np.uint64(16),
            (key & np.uint64(0xFFFF)).astype(np.int64),
            start,
            end,
            np.minimum(start + piece["began"].astype(np.int64) * TICK_NS, end - 1),
            *(piece[name].astype(np.int64) for name in ("loads", "stores", "missed")),
        )


def page_use_blocks(
    processes: Sequence[ProcessSpool], keep: SampleFilter, missed: bool
) -> Iterator[PageUseBlock]:
    """What all processes used, but for memory that `keep` leaves out.

    missed: whether what the plugin takes for misses of the last cache are those of the recording.
    """
    for process in processes:
        path = process.stem.with_name(f"{process.stem.name}.{FILE}")
        tid = process.threads["tid"].astype(np.int32)
        begins = process.begins
        shift = process.shift_ns
        for uses in read_page_uses(path, process.last_ns):
            addr, early = uses.number << np.uint64(PAGE_SHIFT), uses.who == _BEFORE
            known = early | (uses.who < len(process.threads))
            kept = keep(process, np.zeros(len(addr), np.uint64), addr)
            known &= True if kept is None else kept
            if not known.any():
                continue
            addr, found, early = addr[known], uses.chosen(known), early[known]
            who = np.where(early, 0, found.who)
            yield PageUseBlock(
                process.pid,
                found.start_ns + shift,
                found.end_ns + shift,
                found.first_ns + shift,
                addr,
                np.where(early, np.int32(process.pid), tid[who]),
                np.where(early, found.start_ns + shift, begins[who]),
                found.loads,
                found.stores,
                found.missed if missed else np.full(len(found), -1, np.int64),
            )
