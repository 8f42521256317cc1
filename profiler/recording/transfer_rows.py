"""Transfers as the trace has them: with the threads' numbers and the region of the memory."""

import numpy as np
from numpy.typing import NDArray

from ..transfer_block import TransferBlock
from .attribution import RegionFinder
from .threads import ThreadTable

PAGE = 4096


def transfer_columns(
    block: TransferBlock, table: ThreadTable, finder: RegionFinder, start: int
) -> dict[str, NDArray[np.int64] | NDArray[np.int32]]:
    """The rows of one stretch, one for each (writer, reader, region) in it; start: of the recording."""
    writer, reader = table.find(block.writer, block.writer_ns), table.find(block.reader, block.reader_ns)
    known = (writer >= 0) & (reader >= 0)
    keys = np.stack([writer, reader, _regions(block, finder)])[:, known]
    rows, place = np.unique(keys, axis=1, return_inverse=True)
    events = np.bincount(place.ravel(), block.events[known], minlength=rows.shape[1])
    return {
        "start_ns": np.full(rows.shape[1], block.start_ns - start, np.int64),
        "end_ns": np.full(rows.shape[1], block.end_ns - start, np.int64),
        "writer": rows[0],
        "reader": rows[1],
        "region": rows[2],
        "events": events.astype(np.int64),
    }


def _regions(block: TransferBlock, finder: RegionFinder) -> NDArray[np.int32]:
    """Of each page, a region that its first byte or its last was in: at the end of the stretch, or before."""
    found = np.full(len(block), -1, np.int32)
    pid = np.full(len(block), block.pid, np.int32)
    for time in (block.end_ns - 1, (block.start_ns + block.end_ns) // 2, block.start_ns):
        for place in (0, PAGE - 1):
            missing = np.flatnonzero(found < 0)
            at = np.full(len(missing), time, np.int64)
            found[missing] = finder.find(pid[missing], block.addr[missing] + np.uint64(place), at)
    return found
