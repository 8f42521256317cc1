"""The control file: one entry a process, shared by all processes of a job (native/preload/processes.c)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .environment import CAPACITY, CONTROL, CONTROL_VERSION, MAGIC

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("entry_bytes", "<u4"),
        ("capacity", "<u4"),
        ("used", "<u4"),
        ("images", "<u4"),
        ("filters", "<u4"),
        ("choices", "<u4"),
        ("spare", "<u4", 7),
    ]
)
ENTRY = np.dtype(
    [
        ("pid", "<u4"),
        ("parent", "<u4"),
        ("number", "<u4"),
        ("rank", "<u4"),
        ("children", "<u4"),
        ("in_job", "<u4"),
        ("hash", "<u8"),
        ("start_ns", "<u8"),
        ("end_ns", "<u8"),
        ("parent_image", "<u4"),
        ("program", "<u4"),
        ("plays", "<u8"),
    ]
)


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """One process.

    parent: index of the parent's entry, -1 for the first; parent_image: log it was forked from, 0 none;
    plays: hash of the plan's process whose part it has, 0: that of its own name.
    """

    name: str
    pid: int
    parent: int
    start_ns: int
    end_ns: int
    parent_image: int
    plays: int = 0


def read_control(workdir: Path) -> list[ProcessEntry]:
    """The processes in order of birth; empty when the file is missing or not a control file."""
    try:
        data = (workdir / CONTROL).read_bytes()[: HEADER.itemsize + CAPACITY * ENTRY.itemsize]
    except OSError:
        return []
    if len(data) < HEADER.itemsize:
        return []
    header = np.frombuffer(data, HEADER, 1)[0]
    if (
        header["magic"] != MAGIC
        or header["version"] != CONTROL_VERSION
        or header["entry_bytes"] != ENTRY.itemsize
    ):
        return []
    count = min(int(header["used"]), (len(data) - HEADER.itemsize) // ENTRY.itemsize)
    rows = np.frombuffer(data, ENTRY, count, HEADER.itemsize)
    found: list[ProcessEntry] = []
    for index in range(count):
        row = rows[index]
        # Parents stand before their children; anything else did not come from the library.
        parent = int(row["parent"]) - 1
        parent = parent if parent < index else -1
        found.append(
            ProcessEntry(
                _name(int(row["rank"]), found[parent].name if parent >= 0 else "", int(row["number"])),
                int(row["pid"]) & 0x7FFFFFFF,
                parent,
                _signed(int(row["start_ns"])),
                _signed(int(row["end_ns"])) or -1,
                int(row["parent_image"]),
                int(row["plays"]),
            )
        )
    return found


def _name(rank: int, parent: str, number: int) -> str:
    if rank:
        return f"r{rank - 1}"
    return f"{parent}.{number}" if parent else "p0"


def _signed(value: int) -> int:
    return min(value, (1 << 63) - 1)
