"""Who used which page how often, as the plugin counted it (native/page_uses/page_uses.h)."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ...page_use_block import PageUseBlock
from .filter import SampleFilter
from .spool import ProcessSpool

FILE = "uses"
USE = np.dtype([("key", "<u8"), ("loads", "<u8"), ("stores", "<u8"), ("missed", "<u4"), ("began", "<u4")])
PAGE_SHIFT, TICK_NS = 12, 64
_HEADER, _USED = np.uint64(1 << 63), np.uint64(1 << 62)
_AT_ONCE = 1 << 18
_MOST = np.uint64(1 << 62)

Uses = NDArray[np.void]


def page_use_blocks(
    processes: Sequence[ProcessSpool], keep: SampleFilter, *, missed: bool
) -> Iterator[PageUseBlock]:
    """What all processes used, but for memory that `keep` leaves out.

    missed: whether what the plugin takes for misses of the last cache are those of the recording.
    """
    for process in processes:
        path = process.stem.with_name(f"{process.stem.name}.{FILE}")
        count = path.stat().st_size // USE.itemsize if path.exists() else 0
        if not count:
            continue
        uses = np.memmap(path, USE, "r", 0, (count,))
        headers = np.flatnonzero(uses["key"] == _HEADER)
        starts = uses["loads"][headers].astype(np.int64)
        borders = np.append(starts, process.last_ns)
        for first in range(0, count, _AT_ONCE):
            piece = np.array(uses[first : first + _AT_ONCE])
            stretch = np.searchsorted(headers, np.arange(first, first + len(piece)), side="right") - 1
            good = (piece["key"] & _USED > 0) & (stretch >= 0)
            block = _block(process, piece[good], borders, stretch[good], keep, missed=missed)
            if len(block):
                yield block


def _block(
    process: ProcessSpool,
    uses: Uses,
    borders: NDArray[np.int64],
    stretch: NDArray[np.int64],
    keep: SampleFilter,
    *,
    missed: bool,
) -> PageUseBlock:
    """borders: of the stretches, by the process's own clock; stretch: of each use."""
    number = uses["key"] & ~_USED
    addr, thread = (
        number >> np.uint64(16) << np.uint64(PAGE_SHIFT),
        (number & np.uint64(0xFFFF)).astype(np.int64),
    )
    known = (thread < len(process.threads)) & (np.maximum(uses["loads"], uses["stores"]) < _MOST)
    kept = keep(process, np.zeros(len(addr), np.uint64), addr)
    known &= True if kept is None else kept
    uses, addr, thread, stretch = uses[known], addr[known], thread[known], stretch[known]
    start, end = borders[stretch], np.maximum(borders[stretch + 1], borders[stretch] + 1)
    first = np.minimum(start + uses["began"].astype(np.int64) * TICK_NS, end - 1)
    begins = np.array([process.moment(max(int(at), 0)) for at in process.threads["start_ns"]], np.int64)
    shift = process.shift_ns
    return PageUseBlock(
        process.pid,
        start + shift,
        end + shift,
        first + shift,
        addr,
        process.threads["tid"].astype(np.int32)[thread],
        begins[thread],
        uses["loads"].astype(np.int64),
        uses["stores"].astype(np.int64),
        uses["missed"].astype(np.int64) if missed else np.full(len(uses), -1, np.int64),
    )
