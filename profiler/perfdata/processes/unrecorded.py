"""Threads that no record names: only samples show them."""

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.common import load_native

from .records import ThreadSpan

LARGEST_TID = 1 << 22  # the kernel's PID_MAX_LIMIT
_REMEMBERED = 1024


class NativeSearch(ctypes.Structure):
    """`struct unrecorded` of profiler/native/perfdata."""

    _fields_ = (
        ("recorded", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("last", ctypes.c_void_p),
        ("used", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("found", ctypes.c_int64),
    )


@cache
def _library() -> ctypes.CDLL:
    library = load_native("profiler", "perfdata")
    pointer = ctypes.c_void_p
    library.perfdata_unrecorded.argtypes = [pointer, pointer, ctypes.c_int64, ctypes.POINTER(NativeSearch)]
    library.perfdata_unrecorded.restype = None
    return library


class UnrecordedThreads:
    """Collects them over blocks of samples. recorded: the threads that records name, a list that grows."""

    def __init__(self, recorded: Sequence[ThreadSpan]) -> None:
        self._recorded = recorded
        self._marked = 0
        self._by_tid = np.zeros(LARGEST_TID + 1, np.bool_)  # whether a record names it
        self._found: dict[tuple[int, int], ThreadSpan] = {}
        self._last = np.zeros(_REMEMBERED, np.uint64)
        self._used = np.zeros(_REMEMBERED, np.bool_)
        self._out = np.empty(0, np.uint64)
        self._native = NativeSearch(
            self._by_tid.ctypes.data, len(self._by_tid), self._last.ctypes.data, self._used.ctypes.data
        )

    def begin(self, samples: int) -> NativeSearch:
        """For native code to search a block of so many samples with; `end` takes what it found."""
        for span in self._recorded[self._marked :]:
            if 0 <= span.tid <= LARGEST_TID:
                self._by_tid[span.tid] = True
        self._marked = len(self._recorded)
        if len(self._out) < samples:
            self._out = np.empty(samples, np.uint64)
            self._native.out = self._out.ctypes.data
        self._native.found = 0
        return self._native

    def end(self) -> None:
        """Keep what was found in the block, in the order of pids and tids."""
        words = np.unique(self._out[: self._native.found].view(np.int64))
        for pid, tid in zip((words >> 32).tolist(), words.astype(np.int32).tolist(), strict=True):
            self._found.setdefault((pid, tid), ThreadSpan(pid, tid))

    def search(self, samples: Mapping[str, NDArray[Any]]) -> None:
        """Search a block of decoded samples."""
        pid, tid = samples["pid"], samples["tid"]
        search = self.begin(len(tid))
        _library().perfdata_unrecorded(pid.ctypes.data, tid.ctypes.data, len(tid), search)
        self.end()

    def spans(self) -> tuple[ThreadSpan, ...]:
        """Those that no record named later either."""
        known = {(span.pid, span.tid) for span in self._recorded}
        return tuple(span for key, span in self._found.items() if key not in known)
