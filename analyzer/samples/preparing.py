"""What is done to every sample before it is counted (native part: prepare.c)."""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..communication.blocks import library

Array = NDArray[Any]
MOST_KINDS = 1 << 16  # of the native part


def choose(
    time_ns: Array, thread: Array, key: Array, is_write: Array, chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint64], NDArray[np.uint8]]:
    """The chosen ones of equally long arrays: times, threads, keys and whether they write, contiguous."""
    size = len(chosen)
    source = (_of(time_ns, np.int64), _of(thread, np.int32), _of(key, np.uint64), _of(is_write, np.bool_))
    selected = _of(chosen, np.bool_)
    if any(len(array) != size for array in source):
        raise ValueError("arrays of different length")
    found = (
        np.empty(size + 1, np.int64),
        np.empty(size + 1, np.uint16),
        np.empty(size + 1, np.uint64),
        np.empty(size + 1, np.uint8),
    )
    kept = library().comm_samples_choose(
        ctypes.byref(_Raw(size, *(array.ctypes.data for array in source))),
        selected.ctypes.data,
        ctypes.byref(_Chosen(*(array.ctypes.data for array in found))),
    )
    return found[0][:kept], found[1][:kept], found[2][:kept], found[3][:kept]


def count_kinds(event: Array, level: Array, levels: int) -> NDArray[np.int64]:
    """(kinds,) samples by event * levels + level, of equally long arrays of bytes."""
    if len(event) != len(level):
        raise ValueError("arrays of different length")
    one, other = _of(event, np.uint8), _of(level, np.uint8)
    counts = np.zeros(MOST_KINDS, np.int64)
    library().comm_kinds_count(counts.ctypes.data, len(one), one.ctypes.data, other.ctypes.data, levels)
    return counts


def count_threads(counts: NDArray[np.int64], thread: Array, chosen: NDArray[np.bool_] | None = None) -> None:
    """Add samples to the (N,) counts of their threads; chosen: which count (None: all).

    Raises ValueError for arrays that do not fit and for a thread that is not in 0..N-1.
    """
    thread_ids, selected = _of(thread, np.int32), None if chosen is None else _of(chosen, np.bool_)
    if selected is not None and len(selected) != len(thread_ids):
        raise ValueError("arrays of different length")
    if len(thread_ids) and not 0 <= int(thread_ids.min()) <= int(thread_ids.max()) < len(counts):
        raise ValueError("thread out of range")
    if not (counts.flags.c_contiguous and counts.dtype == np.int64):
        raise ValueError("counts that are not contiguous")
    mask = selected.ctypes.data if selected is not None else None
    library().comm_threads_count(counts.ctypes.data, len(thread_ids), thread_ids.ctypes.data, mask)


def count_in_slices(
    cells: NDArray[np.float64],
    start_ns: int,
    slice_ns: int,
    time_ns: Array,
    thread: Array,
    weight: Array | None = None,
    chosen: NDArray[np.bool_] | None = None,
) -> None:
    """Add samples to cells (S, N) of slices and threads; those outside count at the ends.

    weight: what each counts (None: one); chosen: which count (None: all). Raises ValueError for arrays that
    do not fit and for a thread that is not in 0..N-1.
    """
    slices, threads = cells.shape
    when, thread_ids = _of(time_ns, np.int64), _of(thread, np.int32)
    amount = None if weight is None else _of(weight, np.float64)
    selected = None if chosen is None else _of(chosen, np.bool_)
    if any(array is not None and len(array) != len(when) for array in (thread_ids, amount, selected)):
        raise ValueError("arrays of different length")
    if not len(when):
        return
    if not slices or int(thread_ids.min()) < 0 or int(thread_ids.max()) >= threads:
        raise ValueError("thread out of range")
    line = _Line(start_ns, slice_ns, slices, threads, cells.ctypes.data)
    library().comm_timeline_count(
        ctypes.byref(line),
        len(when),
        when.ctypes.data,
        thread_ids.ctypes.data,
        amount.ctypes.data if amount is not None else None,
        selected.ctypes.data if selected is not None else None,
    )


def _of(values: Array, kind: type[np.generic]) -> Array:
    return np.ascontiguousarray(values, kind)


class _Raw(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_size_t),
        *((name, ctypes.c_void_p) for name in ("time", "thread", "key", "is_write")),
    )


class _Chosen(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_void_p) for name in ("time", "thread", "key", "is_write"))


class _Line(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("start", "width", "slices", "threads")),
        ("cell", ctypes.c_void_p),
    )
