"""One process image's event log (native/preload/log.c): slots of 64 bytes, each a record or text."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"NUMAPLID"
VERSION = 1
SLOT = 64
LIMIT = 128 << 20

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("slot_bytes", "<u4"),
        ("entry", "<u4"),
        ("image", "<u4"),
        ("pid", "<u4"),
        ("parent_image", "<u4"),
        ("start_ns", "<u8"),
        ("fork_ns", "<u8"),
        ("cursor", "<u8"),
        ("dropped", "<u8"),
        ("spare", "<u8", 8),
    ]
)
RECORD = np.dtype(
    [
        ("check", "<u4"),
        ("kind", "<u2"),
        ("text_slots", "<u2"),
        ("time_ns", "<u8"),
        ("thread", "<u4"),
        ("a", "<u4"),
        ("b", "<u8"),
        ("c", "<u8"),
        ("d", "<u8"),
        ("e", "<u8"),
        ("text_bytes", "<u8"),
    ]
)

PROCESS, THREAD_START, THREAD_END, THREAD_NAME, ALLOC, FREE, MODULE, SEGMENT, MODULE_END, AREA = range(1, 11)
MARK, SANDBOX, NOTHING, CHAIN = 11, 12, 13, 14

LAST_TIME = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Record:
    """One event; what a to e mean depends on the kind (native/preload/preload.h)."""

    kind: int
    time_ns: int
    thread: int
    a: int
    b: int
    c: int
    d: int
    e: int
    text: bytes


@dataclass(frozen=True)
class ImageLog:
    """The log of one process image.

    entry: its process in the control file; parent_image: log it was forked from, 0: none.
    """

    entry: int
    image: int
    pid: int
    parent_image: int
    start_ns: int
    fork_ns: int
    lost: int
    records: list[Record]


def read_log(path: Path) -> ImageLog | None:
    """The log in a file, or None when it is not one. Records that do not verify are counted as lost."""
    try:
        with path.open("rb") as file:
            data = file.read(LIMIT)
    except OSError:
        return None
    if len(data) < HEADER.itemsize:
        return None
    header = np.frombuffer(data, HEADER, 1)[0]
    if header["magic"] != MAGIC or header["version"] != VERSION or header["slot_bytes"] != SLOT:
        return None
    slots = min(int(header["cursor"]), len(data) // SLOT) - HEADER.itemsize // SLOT
    rows = np.frombuffer(data, RECORD, max(slots, 0), HEADER.itemsize)
    records, torn = _records(rows, data)
    return ImageLog(
        int(header["entry"]),
        int(header["image"]),
        int(header["pid"]) & 0x7FFFFFFF,
        int(header["parent_image"]),
        _signed(header["start_ns"]),
        _signed(header["fork_ns"]),
        min(int(header["dropped"]), LIMIT) + torn,
        records,
    )


def read_logs(workdir: Path) -> list[ImageLog]:
    """Every log in a folder, in the order in which they were opened."""
    logs = (read_log(path) for path in sorted(workdir.glob("image-*.log")))
    return [log for log in logs if log is not None]


def _records(rows: NDArray[Any], data: bytes) -> tuple[list[Record], int]:
    torn = 0
    found: list[Record] = []
    skip_to = 0
    columns = [rows[name].tolist() for name in RECORD.names or ()]
    for index, (good, row) in enumerate(zip(_verify(rows).tolist(), zip(*columns, strict=True), strict=True)):
        if index < skip_to:
            continue
        if not good:
            torn += 1
            continue
        _, kind, text_slots, time_ns, thread, a, b, c, d, e, text_bytes = row
        text = b""
        if text_slots:
            skip_to = index + 1 + text_slots
            start = HEADER.itemsize + (index + 1) * SLOT
            text = data[start : start + min(text_bytes, text_slots * SLOT)]
        if kind == NOTHING:  # fills the end of a segment that the next record did not fit in
            continue
        found.append(Record(kind, _signed(time_ns), thread, a, b, c, d, e, text))
    return found, torn


def _verify(rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows carry the FNV-1a of what follows the check word."""
    if not len(rows):
        return np.zeros(0, dtype=np.bool_)
    content = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), SLOT)[:, 4:]
    value = np.full(len(rows), 14695981039346656037, dtype=np.uint64)
    prime = np.uint64(1099511628211)
    for column in content.T:
        value ^= column
        value *= prime
    low = (value & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return np.asarray(rows["check"] == np.where(low == 0, np.uint32(1), low), dtype=np.bool_)


def _signed(value: Any) -> int:
    return int(value) & LAST_TIME
