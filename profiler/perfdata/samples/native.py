"""The decoder's inner loops (profiler/native/perfdata), called by ctypes on numpy arrays."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numaplan.common import load_native

SKIP, REPORT, STOP = 0, 1, 2
AT_END, FULL, STOPPED, TOO_SMALL, PAST_END = range(5)
COUNTED_TYPES = 256

Ints = NDArray[np.int64]


class Found(NamedTuple):
    """Sample records: where they start, how long they are, and the cpumode that their headers tell."""

    positions: Ints
    sizes: Ints
    modes: NDArray[np.uint8]

    def copy(self) -> "Found":
        """The same in arrays of its own."""
        return Found(self.positions.copy(), self.sizes.copy(), self.modes.copy())


class _Walk(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_void_p),
        ("next", ctypes.c_int64),
        ("end", ctypes.c_int64),
        ("room", ctypes.c_int64),
        ("samples", ctypes.c_void_p),
        ("others", ctypes.c_void_p),
        ("sizes", ctypes.c_void_p),
        ("modes", ctypes.c_void_p),
        ("sample_count", ctypes.c_int64),
        ("other_count", ctypes.c_int64),
        ("treatment", ctypes.c_void_p),
        ("counts", ctypes.c_void_p),
        ("swap", ctypes.c_int32),
    )


class _Field(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_int64), ("width", ctypes.c_int64), ("out", ctypes.c_void_p))


@cache
def _library() -> ctypes.CDLL:
    library = load_native("profiler", "perfdata")
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    library.perfdata_walk.argtypes = [ctypes.POINTER(_Walk)]
    library.perfdata_walk.restype = ctypes.c_int
    library.perfdata_gather.argtypes = [
        pointer,
        pointer,
        pointer,
        number,
        ctypes.POINTER(_Field),
        number,
        ctypes.c_int,
    ]
    library.perfdata_gather.restype = None
    library.perfdata_lookup.argtypes = [pointer, pointer, number, pointer, number, ctypes.c_int32, pointer]
    library.perfdata_lookup.restype = None
    return library


class Walker:
    """Walks the record headers of buffers, at most `room` samples (and others) at a time.

    treatment: for each record type below 256 SKIP, REPORT or STOP; counts: records by type, the last
    entry for all types from 256 up, over all buffers walked.
    """

    def __init__(self, treatment: Sequence[int], swap: bool, room: int) -> None:
        self._treatment = np.array(treatment, dtype=np.uint8)
        self._samples = np.empty(room, dtype=np.int64)
        self._others = np.empty(room, dtype=np.int64)
        self._sizes = np.empty(room, dtype=np.int64)
        self._modes = np.empty(room, dtype=np.uint8)
        self.counts = np.zeros(COUNTED_TYPES + 1, dtype=np.int64)
        self._walk = _Walk(
            room=room,
            samples=self._samples.ctypes.data,
            others=self._others.ctypes.data,
            sizes=self._sizes.ctypes.data,
            modes=self._modes.ctypes.data,
            treatment=self._treatment.ctypes.data,
            counts=self.counts.ctypes.data,
            swap=int(swap),
        )

    def walk(self, buffer: NDArray[np.uint8], start: int, end: int) -> tuple[int, int, Found, Ints]:
        """(outcome, where it ended, samples, positions of others) from `start` on.

        The arrays are reused by the next call. start and end lie within the buffer.
        """
        walk = self._walk
        walk.base, walk.next, walk.end = buffer.ctypes.data, start, end
        outcome = _library().perfdata_walk(ctypes.byref(walk))
        count = walk.sample_count
        found = Found(self._samples[:count], self._sizes[:count], self._modes[:count])
        return outcome, walk.next, found, self._others[: walk.other_count]


def gather(
    buffer: NDArray[np.uint8],
    positions: Ints,
    rows: Ints | None,
    fields: Sequence[tuple[int, int, NDArray[np.generic], int]],
    swap: bool,
) -> None:
    """Copy fields of records into columns.

    fields: (offset from the position, width 8, 4, 2 or -4 for signed words, column of 64-bit entries, first
    row); rows: rows to fill, counted from the first one, or None for consecutive ones. The caller has checked
    that all lies inside.
    """
    table = (_Field * len(fields))(
        *(_Field(offset, width, column.ctypes.data + 8 * first) for offset, width, column, first in fields)
    )
    where = None if rows is None else rows.ctypes.data
    _library().perfdata_gather(
        buffer.ctypes.data, positions.ctypes.data, where, len(positions), table, len(fields), int(swap)
    )


def column(buffer: NDArray[np.uint8], positions: Ints, width: int, swap: bool) -> NDArray[np.uint64]:
    """The numbers of `width` bytes at each position; the caller has checked that they lie inside."""
    out = np.empty(len(positions), dtype=np.uint64)
    gather(buffer, positions, None, [(0, width, out, 0)], swap)
    return out


class IdTable:
    """Which event an id stands for."""

    def __init__(self, ids: dict[int, int]) -> None:
        keys = sorted(ids)
        self._keys = np.array(keys, dtype=np.uint64)
        self._values = np.array([ids[key] for key in keys], dtype=np.int32)

    def find(self, ids: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The event index of each id, -1 for unknown ones."""
        found = np.empty(len(ids), dtype=np.int32)
        _library().perfdata_lookup(
            self._keys.ctypes.data,
            self._values.ctypes.data,
            len(self._keys),
            ids.ctypes.data,
            len(ids),
            -1,
            found.ctypes.data,
        )
        return found
