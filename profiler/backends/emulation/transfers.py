"""Who took lines from whom, as the plugin counted it (native/emulate/transfer_table.c)."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ...transfer_block import TransferBlock
from .filter import SampleFilter
from .spool import ProcessSpool

PAGE_SHIFT = 12
FILES = ("transfers", "transfers-window", "transfers-table")
_HEADER, _USED = np.uint64(1 << 63), np.uint64(1 << 62)


def transfer_blocks(processes: Sequence[ProcessSpool], keep: SampleFilter) -> Iterator[TransferBlock]:
    """The transfers of all processes by stretch of time, but for those of memory that `keep` leaves out."""
    for process in processes:
        start, rows = -1, list[NDArray[np.uint64]]()
        for pairs in process.words(FILES):
            borders = np.flatnonzero(pairs[:, 0] & _HEADER)
            for part in np.split(np.array(pairs), borders):
                if len(part) and part[0, 0] & _HEADER:
                    yield from _block(process, rows, start, int(part[0, 1]), keep)
                    start, rows, part = int(part[0, 1]), [], part[1:]
                if start >= 0:
                    rows.append(part[(part[:, 0] & _USED) > 0])
        yield from _block(process, rows, start, process.last_ns, keep)


def _block(
    process: ProcessSpool, rows: list[NDArray[np.uint64]], start: int, end: int, keep: SampleFilter
) -> Iterator[TransferBlock]:
    """One stretch by the process's own clock; nothing where nothing was transferred."""
    if not rows:
        return
    found = np.concatenate(rows)
    addr = (found[:, 0] & ~_USED) << np.uint64(PAGE_SHIFT)
    writer, reader = (
        (found[:, 1] >> np.uint64(shift) & np.uint64(0xFFFF)).astype(np.int64) for shift in (48, 32)
    )
    known = (writer < len(process.threads)) & (reader < len(process.threads)) & (writer != reader)
    kept = keep(process, np.zeros(len(addr), np.uint64), addr)
    known &= True if kept is None else kept
    if not known.any():
        return
    writer, reader = writer[known], reader[known]
    tids = process.threads["tid"].astype(np.int32)
    begins = np.array([process.moment(max(int(at), 0)) for at in process.threads["start_ns"]], np.int64)
    yield TransferBlock(
        process.pid,
        process.moment(start),
        max(process.moment(end), process.moment(start) + 1),
        addr[known],
        tids[writer],
        begins[writer],
        tids[reader],
        begins[reader],
        (found[known, 1] & np.uint64(0xFFFFFFFF)).astype(np.int64),
    )
