"""Events between threads counted in blocks of memory in C (analyzer/native/communication), by ctypes."""

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError, load_native

MAX_THREADS = 2048
TABLE_BYTES = 128 << 20  # beyond it only a fixed share of the blocks is followed

Counts = NDArray[np.float64]


@cache
def library() -> ctypes.CDLL:
    """The native part, with the types of its functions."""
    loaded = load_native("analyzer", "communication")
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    loaded.comm_counter_new.argtypes = [number, number, ctypes.c_uint64]
    loaded.comm_counter_new.restype = pointer
    loaded.comm_counter_add.argtypes = [pointer, ctypes.c_size_t, *[pointer] * 5]
    loaded.comm_counter_events.argtypes = [pointer, pointer]
    loaded.comm_counter_facts.argtypes = [pointer, pointer, pointer]
    loaded.comm_counter_free.argtypes = [pointer]
    for name in ("events", "facts", "free"):
        getattr(loaded, f"comm_counter_{name}").restype = None
    loaded.comm_leaves_count.argtypes = [pointer, pointer]
    loaded.comm_samples_choose.argtypes = [pointer, pointer, pointer]
    loaded.comm_samples_choose.restype = ctypes.c_size_t
    loaded.comm_kinds_count.argtypes = [pointer, ctypes.c_size_t, pointer, pointer, number]
    loaded.comm_kinds_count.restype = None
    loaded.comm_threads_count.argtypes = [pointer, ctypes.c_size_t, pointer, pointer]
    loaded.comm_threads_count.restype = None
    loaded.comm_timeline_count.argtypes = [pointer, ctypes.c_size_t, *[pointer] * 4]
    loaded.comm_timeline_count.restype = None
    loaded.comm_pages_new.restype = pointer
    loaded.comm_pages_add.argtypes = [pointer, pointer, pointer]
    loaded.comm_pages_add_uses.argtypes = [pointer, pointer, pointer]
    loaded.comm_pages_rows.argtypes = [pointer]
    loaded.comm_pages_rows.restype = ctypes.c_size_t
    loaded.comm_pages_read.argtypes = [pointer, pointer]
    loaded.comm_pages_free.argtypes = [pointer]
    loaded.comm_pages_free.restype = None
    return loaded


class _Bins(ctypes.Structure):
    _fields_ = (
        ("start", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("pairs", ctypes.c_size_t),
        ("cell", ctypes.c_void_p),
    )


class BlockCounter:
    """Last-writer events in blocks of 2^shift bytes, in one pass over samples in order of time.

    Raises UsageError for too many threads.
    """

    def __init__(self, threads: int, shift: int, *, table_bytes: int = TABLE_BYTES) -> None:
        check_count(threads)
        self.threads = threads
        self._library = library()
        self._handle: Any = self._library.comm_counter_new(threads, shift, table_bytes)
        if not self._handle:
            raise MemoryError("communication table")

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.comm_counter_free(self._handle)
            self._handle = None

    def add(self, addr: NDArray[np.uint64], thread: NDArray[np.uint16], is_write: NDArray[np.uint8]) -> None:
        """Count the next samples in order of time: equally long contiguous arrays, threads in 0..N-1."""
        self._add(addr, thread, is_write, None, None)

    def add_timed(
        self,
        addr: NDArray[np.uint64],
        thread: NDArray[np.uint16],
        is_write: NDArray[np.uint8],
        time_ns: NDArray[np.int64],
        start_ns: int,
        bin_ns: int,
        cells: NDArray[np.int32],
    ) -> None:
        """The same, and count the events in bins of time, those outside at the ends.

        cells: (bins, pairs of threads in the order of numpy.triu_indices), contiguous, added to.
        """
        pairs = self.threads * (self.threads - 1) // 2
        if len(time_ns) != len(addr) or cells.shape[1] != pairs or not len(cells) or bin_ns < 1:
            raise ValueError("bins that do not fit")
        bins = _Bins(start_ns, bin_ns, len(cells), pairs, cells.ctypes.data)
        time_ns = np.ascontiguousarray(time_ns)
        self._add(addr, thread, is_write, time_ns.ctypes.data, ctypes.byref(bins))

    def _add(
        self,
        addr: NDArray[np.uint64],
        thread: NDArray[np.uint16],
        is_write: NDArray[np.uint8],
        time: int | None,
        bins: Any,
    ) -> None:
        check_columns(self.threads, addr, thread, is_write)
        columns = (array.ctypes.data for array in (addr, thread, is_write))
        if self._library.comm_counter_add(self._handle, len(addr), *columns, time, bins):
            raise MemoryError("communication table")

    def events(self) -> Counts:
        """(N, N) events [writer, reader]."""
        answer = np.empty((self.threads, self.threads))
        self._library.comm_counter_events(self._handle, answer.ctypes.data)
        return answer

    def blocks(self) -> tuple[int, int]:
        """How many blocks are followed, and how many blocks each of them represents."""
        followed, thinned = ctypes.c_uint64(), ctypes.c_uint32()
        self._library.comm_counter_facts(self._handle, ctypes.byref(followed), ctypes.byref(thinned))
        return followed.value, 1 << thinned.value


def check_count(threads: int) -> None:
    """Raises UsageError when that many threads cannot be counted."""
    if not 1 <= threads <= MAX_THREADS:
        raise UsageError(f"{threads} threads", f"1 to {MAX_THREADS} can be counted")


def check_columns(
    threads: int, addr: NDArray[np.uint64], thread: NDArray[np.uint16], is_write: NDArray[np.uint8]
) -> None:
    """Raises ValueError for columns that the native part must not be given."""
    if not len(thread) == len(is_write) == len(addr):
        raise ValueError("arrays of different length")
    if not (addr.flags.c_contiguous and thread.flags.c_contiguous and is_write.flags.c_contiguous):
        raise ValueError("arrays that are not contiguous")
    if len(thread) and int(thread.max()) >= threads:
        raise ValueError("thread out of range")
