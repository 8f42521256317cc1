"""Samples counted by page, thread and phase, and who touched each page first (native part: pages.c)."""

import ctypes
from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer.blocks import check_count, library
from numaplan.analyzer.samples import TraceSamples
from numaplan.profiler import Trace

PAGE = 4096
MOST_BORDERS = 31  # of the native part
_PLACED, _CODE = 1, 2
_ROW = np.dtype(
    {
        "names": ["page", "accesses", "before", "writes", "space", "thread", "phase", "toucher"],
        "formats": ["<u8", "<f8", "<f8", "<f8", "<u4", "<u2", "<u2", "<u4"],
        "itemsize": 48,
    }
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class PageCounts(msgspec.Struct, frozen=True):
    """Equally long arrays, one entry for each (region, page, thread, phase) with samples, in that order.

    page: offset in the region // 4096; accesses, writes: samples from the start of the first thread beside
    the main one, before: samples from before it; toucher: the thread seen on the page first of all.
    elsewhere: (N, N) samples of each thread in memory of other regions, by the thread seen on the page first.
    Samples of an event that was sampled more seldom count as many of the one sampled most often as they stand
    for.
    """

    region: Ints
    page: Ints
    thread: Ints
    phase: Ints
    accesses: Floats
    before: Floats
    writes: Floats
    toucher: Ints
    elsewhere: Floats


def count_pages(
    trace: Trace, samples: TraceSamples, kinds: Collection[str], borders: Sequence[int] = ()
) -> PageCounts:
    """Count the samples of regions of these kinds that are at least a page, and of the rest of memory.

    borders: times in ns at which a new phase begins, ascending. Raises ValueError for more than MOST_BORDERS.
    """
    check_count(samples.threads)
    if len(borders) > MOST_BORDERS:
        raise ValueError(f"{len(borders)} borders")
    rules = _Rules(trace, samples, kinds, borders)
    handle = library().pages_new()
    if not handle:
        raise MemoryError("pages")
    try:
        for columns in samples.columns():
            if library().pages_add(handle, ctypes.byref(rules.native), ctypes.byref(_samples(columns))):
                raise MemoryError("pages")
        rows = np.empty(library().pages_rows(handle), _ROW)
        if library().pages_read(handle, rows.ctypes.data):
            raise MemoryError("pages")
    finally:
        library().pages_free(handle)
    return _in_order(rows, len(rules.kind), samples.threads)


def _in_order(rows: NDArray[Any], regions: int, threads: int) -> PageCounts:
    placed = rows["space"] < regions
    apart = rows[~placed]
    elsewhere = np.zeros((threads, threads))
    np.add.at(elsewhere, (apart["thread"], apart["toucher"]), apart["accesses"] + apart["before"])
    rows = rows[placed]
    rows = rows[np.lexsort([rows[name] for name in ("phase", "thread", "page", "space")])]
    names = {"region": "space"} | {name: name for name in _ROW.names or () if name != "space"}
    columns: dict[str, Any] = {
        name: rows[of].astype(np.float64 if _ROW[of].kind == "f" else np.int64) for name, of in names.items()
    }
    return PageCounts(**columns, elsewhere=elsewhere)


class _Native(ctypes.Structure):
    _fields_ = (
        ("regions", ctypes.c_uint32),
        ("borders", ctypes.c_uint32),
        *((name, ctypes.c_void_p) for name in ("start", "kind", "process", "border")),
        ("started", ctypes.c_int64),
        ("weight", ctypes.c_void_p),
    )


class _Samples(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_size_t),
        *((name, ctypes.c_void_p) for name in ("time", "addr", "thread", "region", "is_write", "event")),
    )


class _Rules:
    """What the native part must know of the trace; the arrays live as long as this does."""

    def __init__(
        self, trace: Trace, samples: TraceSamples, kinds: Collection[str], borders: Sequence[int]
    ) -> None:
        size = 1 + max((row.region for row in trace.region_rows), default=-1)
        self.kind = np.zeros(size, np.uint8)
        self.start = np.zeros(size, np.uint64)
        for region in trace.region_rows:
            placed = region.kind in kinds and region.bytes >= PAGE
            self.start[region.region] = region.start_addr
            self.kind[region.region] = _PLACED if placed else _CODE * (region.kind == "text")
        self.process = np.zeros(samples.threads, np.uint32)
        numbers: dict[str, int] = {}
        for thread in trace.thread_rows:
            self.process[thread.thread] = numbers.setdefault(thread.process, len(numbers))
        started = [thread.start_ns for thread in trace.thread_rows if thread.path != "0"]
        self.border = np.array(borders, np.int64)
        self.weight = np.ones(1 << 8)
        self.weight[: len(samples.weights)] = samples.weights
        pointers = (array.ctypes.data for array in (self.start, self.kind, self.process, self.border))
        first = min(started, default=0)
        self.native = _Native(size, len(borders), *pointers, first, self.weight.ctypes.data)


def _samples(columns: dict[str, NDArray[Any]]) -> _Samples:
    words = {"time_ns": np.int64, "addr": np.uint64, "thread": np.int32, "region": np.int32}
    names: dict[str, Any] = {**words, "is_write": np.bool_, "event": np.uint8}
    arrays = [np.ascontiguousarray(columns[name], kind) for name, kind in names.items()]
    columns |= dict(zip(names, arrays, strict=True))  # kept alive by who holds them
    return _Samples(len(arrays[0]), *(array.ctypes.data for array in arrays))
