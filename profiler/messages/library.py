"""Messages by a library that stands before MPI's functions (native/messages): each process fills a table."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..trace.schema import MOST_RANKS
from .building import LIBRARY
from .message import Found, Messages

_FOLDER = "NUMAPLAN_MESSAGES"
_KINDS = ("sent", "put", "get", "modelled")  # enum ms_kind
_VERSION = 1
_MOST_BYTES = 1 << 30  # of a file; the library makes none as large
_MOST = 1 << 62
_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("capacity", "<u4"),
        ("rank", "<u4"),
        ("ranks", "<u4"),
        ("pid", "<u4"),
        ("spare", "<u4"),
        ("dropped", "<u8"),
        ("outside", "<u8"),
        ("more", "<u8", 2),
    ]
)
_ENTRY = np.dtype([("key", "<u8"), ("bytes", "<u8"), ("count", "<u8")])


@dataclass(frozen=True)
class Library:
    """The library at this path, built for the job's MPI."""

    path: Path
    name = "pmpi"
    when_killed = ""
    why_none = "killed as they began, or by another MPI than the library that counts them was built for"

    def environment(self, folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
        """See Way.environment."""
        path = self.path
        if set(" :$") & set(str(path)):  # LD_PRELOAD cannot carry it
            path = folder / LIBRARY
            path.symlink_to(self.path)
        loaded = ":".join(filter(None, [environment.get("LD_PRELOAD", ""), str(path)]))
        return {**environment, "LD_PRELOAD": loaded, _FOLDER: str(folder)}

    def read(self, folder: Path) -> Found:
        """See Way.read."""
        found: list[Messages] = []
        ranks, size, dropped, outside = set(), 0, 0, 0
        for path in sorted(folder.glob("*.messages")):
            data = path.read_bytes() if path.stat().st_size <= _MOST_BYTES else b""
            if (header := _header(data)) is None:
                continue
            ranks.add(int(header["rank"]))
            size = max(size, int(header["ranks"]))
            dropped += int(header["dropped"])
            outside += int(header["outside"])
            found += _rows(data, header)
        warnings = [f"{dropped:,} messages between ranks were not counted: too many threads"] * bool(dropped)
        warnings += [f"{outside:,} messages went to ranks of other jobs, and are left out"] * bool(outside)
        return Found(found, frozenset(ranks), warnings, size)


def _header(data: bytes) -> np.void | None:
    """The header of a file that the library has written; None: of another."""
    if len(data) < _HEADER.itemsize:
        return None
    header: np.void = np.frombuffer(data, _HEADER, 1)[0]
    whole = len(data) == _HEADER.itemsize + int(header["capacity"]) * _ENTRY.itemsize
    known = header["magic"] == b"NUMAPLMS" and header["version"] == _VERSION
    return header if whole and known and header["rank"] < MOST_RANKS else None


def _rows(data: bytes, header: np.void) -> Iterator[Messages]:
    entries = np.frombuffer(data, _ENTRY, offset=_HEADER.itemsize)
    for key, size, count in entries[entries["key"] != 0].tolist():
        kind, peer, tid = key >> 56 & 0x7F, key >> 32 & 0xFFFFFF, key & 0xFFFFFFFF
        if kind < len(_KINDS) and max(size, count) < _MOST and tid < 1 << 31:
            yield Messages(int(header["rank"]), peer, _KINDS[kind], size, count, int(header["pid"]), tid)
