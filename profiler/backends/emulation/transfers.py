"""Who took lines from whom, as a plugin counted it (native/transfers/table.c)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...transfer_block import TransferBlock
from .filter import SampleFilter
from .spool import ProcessSpool

PAGE_SHIFT = 12
FILES = ("transfers", "transfers-window", "transfers-table")
_HEADER, _USED = np.uint64(1 << 63), np.uint64(1 << 62)

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class TransferStretch:
    """Lines that were taken in [start_ns, end_ns) by the plugin's clock; equally long arrays.

    addr: of a page that they are in, or near to; writer, reader: whose.
    """

    start_ns: int
    end_ns: int
    addr: Words
    writer: Ints
    reader: Ints
    events: Ints


def read_transfers(pieces: Iterable[Words], last_ns: int) -> Iterator[TransferStretch]:
    """What (n, 2) words say, in order; nothing of stretches in which nothing was taken.

    last_ns: when the last stretch ended.
    """
    start, rows = -1, list[Words]()
    for pairs in pieces:
        borders = np.flatnonzero(pairs[:, 0] & _HEADER)
        for part in np.split(np.array(pairs), borders):
            if len(part) and part[0, 0] & _HEADER:
                yield from _stretch(rows, start, int(part[0, 1]))
                start, rows, part = int(part[0, 1]), [], part[1:]
            if start >= 0:
                rows.append(part[(part[:, 0] & _USED) > 0])
    yield from _stretch(rows, start, last_ns)


def _stretch(rows: list[Words], start: int, end: int) -> Iterator[TransferStretch]:
    if sum(map(len, rows)):
        found = np.concatenate(rows)
        writer, reader = (
            (found[:, 1] >> np.uint64(shift) & np.uint64(0xFFFF)).astype(np.int64) for shift in (48, 32)
        )
        events = (found[:, 1] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        yield TransferStretch(
            start, end, (found[:, 0] & ~_USED) << np.uint64(PAGE_SHIFT), writer, reader, events
        )


def transfer_blocks(processes: Sequence[ProcessSpool], keep: SampleFilter) -> Iterator[TransferBlock]:
    """The transfers of all processes by stretch of time, but for those of memory that `keep` leaves out."""
    for process in processes:
        tid, count = process.threads["tid"].astype(np.int32), len(process.threads)
        begins = process.begins
        for stretch in read_transfers(process.words(FILES), process.last_ns):
            known = np.maximum(stretch.writer, stretch.reader) < count
            known &= stretch.writer != stretch.reader
            kept = keep(process, np.zeros(len(known), np.uint64), stretch.addr)
            known &= True if kept is None else kept
            if not known.any():
                continue
            writer, reader = stretch.writer[known], stretch.reader[known]
            start, end = process.moment(stretch.start_ns), process.moment(stretch.end_ns)
            yield TransferBlock(
                process.pid,
                start,
                max(end, start + 1),
                stretch.addr[known],
                tid[writer],
                begins[writer],
                tid[reader],
                begins[reader],
                stretch.events[known],
            )
