"""The call chains of samples (profiler/native/perfdata/callers.c): `perf record --call-graph`."""

import ctypes
import weakref
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from numaplan.common import load_native

from ...call_block import CallBlock
from ..samples.columns import Column
from ..samples.native import Ints

_PROCESS = 1 << 63


class Callers:
    """The calls that samples were taken in, each known by its number; they are numbered as they come."""

    def __init__(self) -> None:
        tree = _library().perfdata_callers_new()
        if not tree:
            raise MemoryError
        self._tree = ctypes.c_void_p(tree)
        weakref.finalize(self, _library().perfdata_callers_free, self._tree)

    def find(
        self, buffer: NDArray[np.uint8], places: Ints, ips: Column, pids: Column, swap: bool
    ) -> NDArray[np.int32]:
        """The innermost call of each sample, whose chain is at a place and inside the buffer; 0: none."""
        found = np.empty(len(places), np.int32)
        arrays = [np.ascontiguousarray(one) for one in (places, ips, pids)]
        pointers = [one.ctypes.data for one in arrays]
        _library().perfdata_callers(
            self._tree, buffer.ctypes.data, *pointers, len(places), int(swap), found.ctypes.data
        )
        return found

    def arrays(self) -> "CallTable":
        """All so far."""
        count = int(_library().perfdata_callers_count(self._tree))
        ips, callers = np.empty(count, np.uint64), np.empty(count, np.uint32)
        _library().perfdata_callers_list(self._tree, ips.ctypes.data, callers.ctypes.data)
        return CallTable(ips, callers)


class CallTable:
    """Calls by their numbers less one: what Callers found in a whole recording."""

    def __init__(
        self, ips: NDArray[np.uint64] | None = None, callers: NDArray[np.uint32] | None = None
    ) -> None:
        self._ips = np.empty(0, np.uint64) if ips is None else ips
        self._callers = np.empty(0, np.uint32) if callers is None else callers

    def __len__(self) -> int:
        return len(self._ips)

    def blocks(self, first: int) -> Iterator[CallBlock]:
        """Of each process; first: the number of the first call of all."""
        of_process = self._ips >= _PROCESS
        process = np.full(len(self), -1, np.int64)
        for at, number in enumerate(self._callers.tolist()):  # a caller comes before what it calls
            process[at] = process[number - 1] if number else self._ips[at] & np.uint64(_PROCESS - 1)
        caller = self._callers.astype(np.int64) - 1
        caller[caller >= 0] = np.where(of_process[caller[caller >= 0]], -1, caller[caller >= 0] + first)
        for pid in np.unique(process).tolist():
            rows = np.flatnonzero((process == pid) & ~of_process)
            numbers = (first + rows).astype(np.int32)
            yield CallBlock(pid, numbers, caller[rows].astype(np.int32), self._ips[rows])


@cache
def _library() -> ctypes.CDLL:
    native = load_native("profiler", "perfdata")
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    native.perfdata_callers_new.restype = pointer
    native.perfdata_callers_free.argtypes = [pointer]
    native.perfdata_callers_free.restype = None
    native.perfdata_callers_count.argtypes = [pointer]
    native.perfdata_callers_count.restype = ctypes.c_uint32
    native.perfdata_callers_list.argtypes = [pointer] * 3
    native.perfdata_callers_list.restype = None
    native.perfdata_callers.argtypes = [*[pointer] * 5, number, ctypes.c_int, pointer]
    native.perfdata_callers.restype = None
    return native
