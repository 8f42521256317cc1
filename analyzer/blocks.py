"""Events between threads counted block by block in C (analyzer/native/communication), called by ctypes."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError
from numaplan.common.native import load_native

MAX_THREADS = 2048
TABLE_BYTES = 64 << 20  # a scale's memory; beyond it only a fixed share of the blocks is followed

Counts = NDArray[np.float64]


@cache
def _library() -> ctypes.CDLL:
    library = load_native(__file__, "communication")
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    wide = ctypes.c_uint64
    library.counter_new.argtypes = [number, number, pointer, pointer, number, wide, wide, wide]
    library.counter_new.restype = pointer
    library.counter_add.argtypes = [pointer, ctypes.c_size_t, pointer, pointer, pointer]
    library.counter_events.argtypes = [pointer, number, pointer]
    library.counter_pairs.argtypes = [pointer, number, pointer]
    library.counter_windowed.argtypes = [pointer, number, pointer]
    library.counter_facts.argtypes = [pointer, number, pointer, pointer]
    library.counter_free.argtypes = [pointer]
    for name in ("events", "pairs", "windowed", "facts", "free"):
        getattr(library, f"counter_{name}").restype = None
    return library


class BlockCounter:
    """Last-writer events at several block sizes, in one pass over samples in order of time.

    shifts: log2 of the block sizes; pairs: for each whether to remember who ever touched and wrote a block;
    groups: into how many matrices the counts are split, events by turns of `event_window` samples, pairs by
    block; pair_window: samples in which a pair in a block counts once.
    Raises UsageError for too many threads.
    """

    def __init__(
        self,
        threads: int,
        shifts: Sequence[int],
        pairs: Sequence[bool],
        *,
        groups: int = 1,
        event_window: int = 1,
        pair_window: int = 1,
        table_bytes: int = TABLE_BYTES,
    ) -> None:
        if not 1 <= threads <= MAX_THREADS:
            raise UsageError(f"{threads} threads", f"1 to {MAX_THREADS} can be counted")
        self.threads, self.groups = threads, groups
        sizes = np.array(shifts, np.uint8)
        chosen = np.array(pairs, np.uint8)
        self._library = _library()
        self._handle: Any = self._library.counter_new(
            threads,
            len(sizes),
            sizes.ctypes.data,
            chosen.ctypes.data,
            groups,
            event_window,
            pair_window,
            table_bytes,
        )
        if not self._handle:
            raise MemoryError("communication tables")

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.counter_free(self._handle)
            self._handle = None

    def add(self, addr: NDArray[np.uint64], thread: NDArray[np.uint16], is_write: NDArray[np.uint8]) -> None:
        """Count the next samples in order of time: equally long contiguous arrays, threads in 0..N-1."""
        count = len(addr)
        if count == 0:
            return
        if not len(thread) == len(is_write) == count:
            raise ValueError("arrays of different length")
        if int(thread.max()) >= self.threads:
            raise ValueError("thread out of range")
        failed = self._library.counter_add(
            self._handle, count, addr.ctypes.data, thread.ctypes.data, is_write.ctypes.data
        )
        if failed:
            raise MemoryError("communication tables")

    def events(self, scale: int) -> Counts:
        """(groups, N, N) events [writer, reader] at one scale."""
        return self._matrices(self._library.counter_events, scale)

    def block_pairs(self, scale: int) -> Counts:
        """(groups, N, N) blocks that one of two threads wrote and the other touched, grouped by block."""
        return self._matrices(self._library.counter_pairs, scale)

    def windowed_pairs(self, scale: int) -> Counts:
        """(groups, N, N) the same counted once in each window of samples."""
        return self._matrices(self._library.counter_windowed, scale)

    def blocks(self, scale: int) -> tuple[int, int]:
        """How many blocks are followed at one scale, and how many each of them stands for."""
        followed, thinned = ctypes.c_uint64(), ctypes.c_uint32()
        self._library.counter_facts(self._handle, scale, ctypes.byref(followed), ctypes.byref(thinned))
        return followed.value, 1 << thinned.value

    def _matrices(self, function: Any, scale: int) -> Counts:
        answer = np.empty((self.groups, self.threads, self.threads))
        function(self._handle, scale, answer.ctypes.data)
        return answer
