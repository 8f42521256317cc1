"""The loop from samples to memory accesses (profiler/native/perfdata/accesses.c), by ctypes."""

import ctypes
from functools import cache

import numpy as np
from numpy.typing import NDArray

from numaplan.common import load_native
from numaplan.machine import MAX_CPUS

from ...sample_block import USER_END
from ...trace.schema import EVENT_CODE, LEVEL_CODE
from ..processes.unrecorded import LARGEST_TID
from . import data_source

FIRST_GUEST = 4  # cpumode from here on
# Codes of what is no memory access: whatever data_src says, and unless that tells a load or a store.
NEVER_AN_ACCESS, NOT_AN_ACCESS = 254, 255

Codes = NDArray[np.uint8]
# The columns of samples in the order of the native structure, and the numbers of those that records hold.
EXTRACTED = ("time", "pid", "tid", "cpu", "ip", "addr", "phys_addr", "period", "weight", "data_src")
SAMPLES = (*EXTRACTED, "event", "cpumode")
ACCESSES = {
    "time_ns": np.int64,
    "pid": np.int32,
    "tid": np.int32,
    "cpu": np.int32,
    "addr": np.uint64,
    "phys_addr": np.uint64,
    "ip": np.uint64,
    "is_write": np.bool_,
    "level": np.uint8,
    "latency": np.int32,
}


class SampleColumns(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in SAMPLES]


class _Facts(ctypes.Structure):
    _fields_ = (("first", ctypes.c_int64), ("seen", ctypes.c_void_p), ("of_kernel", ctypes.c_int64))


class ChosenFacts:
    """What all chosen samples together say. first: the earliest time; pids: of their processes.

    of_kernel: how many were not chosen because they are of kernel memory or by the idle task.
    """

    def __init__(self) -> None:
        self._seen = np.zeros(LARGEST_TID + 2, np.bool_)  # the last place is for what was not chosen
        self.native = _Facts(np.iinfo(np.int64).max, self._seen.ctypes.data)

    @property
    def first(self) -> int:
        return int(self.native.first)

    @property
    def of_kernel(self) -> int:
        return int(self.native.of_kernel)

    @property
    def pids(self) -> frozenset[int]:
        return frozenset(np.flatnonzero(self._seen[:-1]).tolist())


class AccessColumns(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ACCESSES]


class _Rules(ctypes.Structure):
    _fields_ = (
        ("kinds", ctypes.c_void_p),
        ("load_bit", ctypes.c_uint64),
        ("store_bit", ctypes.c_uint64),
        ("largest_tid", ctypes.c_int64),
        ("cpus", ctypes.c_int64),
        ("user_end", ctypes.c_uint64),
        ("has_cpu", ctypes.c_void_p),
        ("load", ctypes.c_uint8),
        ("store", ctypes.c_uint8),
        ("none", ctypes.c_uint8),
        ("never", ctypes.c_uint8),
        ("first_guest", ctypes.c_uint8),
    )


class _Levels(ctypes.Structure):
    _fields_ = (
        ("old", ctypes.c_void_p),
        ("old_of", ctypes.c_void_p),
        ("numbered", ctypes.c_void_p),
        ("old_mask", ctypes.c_uint64),
        ("number_mask", ctypes.c_uint64),
        ("hops_mask", ctypes.c_uint64),
        ("old_shift", ctypes.c_int32),
        ("number_shift", ctypes.c_int32),
        ("hops_shift", ctypes.c_int32),
        ("hops_bits", ctypes.c_int32),
        ("unknown", ctypes.c_uint8),
        ("mark", ctypes.c_uint8),
    )


class Place(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in ("offset", "width", "column"))


class Collect(ctypes.Structure):
    _fields_ = (
        ("rules", _Rules),
        ("levels", _Levels),
        ("facts", ctypes.c_void_p),
        ("unrecorded", ctypes.c_void_p),
        ("out", AccessColumns),
        ("codes", ctypes.c_void_p),
        ("period_sums", ctypes.c_void_p),
        ("without_period", ctypes.c_void_p),
        ("kinds", ctypes.c_int64),
    )


@cache
def library() -> ctypes.CDLL:
    native = load_native("profiler", "perfdata")
    pointer, number, how = ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(Collect)
    native.perfdata_collect.argtypes = [ctypes.POINTER(SampleColumns), number, how, pointer]
    native.perfdata_collect.restype = number
    native.perfdata_extract.argtypes = [*[pointer] * 4, number, pointer, number, ctypes.c_int, how]
    native.perfdata_extract.restype = number
    return native


def rules_of(kinds: Codes, has_cpu: NDArray[np.bool_]) -> _Rules:
    return _Rules(
        kinds=kinds.ctypes.data,
        load_bit=data_source.LOAD,
        store_bit=data_source.STORE,
        largest_tid=LARGEST_TID,
        cpus=MAX_CPUS,
        user_end=USER_END,
        has_cpu=has_cpu.ctypes.data,
        load=EVENT_CODE["load"],
        store=EVENT_CODE["store"],
        none=NOT_AN_ACCESS,
        never=NEVER_AN_ACCESS,
        first_guest=FIRST_GUEST,
    )


def levels_of(by_amd: NDArray[np.bool_]) -> _Levels:
    """by_amd: by event, whether AMD's IBS samples it."""
    old, numbered = data_source.old_tables(), data_source.numbered_table()
    return _Levels(
        old=old.ctypes.data,
        old_of=by_amd.ctypes.data,
        numbered=numbered.ctypes.data,
        old_mask=old.shape[1] - 1,
        number_mask=numbered.shape[0] - 1,
        hops_mask=numbered.shape[1] - 1,
        old_shift=data_source.LEVEL_SHIFT,
        number_shift=data_source.NUMBER_SHIFT,
        hops_shift=data_source.HOPS_SHIFT,
        hops_bits=numbered.shape[1].bit_length() - 1,
        unknown=LEVEL_CODE["unknown"],
        mark=data_source.MARK,
    )
