"""The loops from decoded samples to memory accesses (profiler/native/perfdata/accesses.c), by ctypes."""

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.common import load_native

from ...trace.schema import EVENT_CODE
from ..processes.unrecorded import LARGEST_TID
from .data_source import LOAD, STORE, LevelTables, level_tables

FIRST_GUEST = 4  # cpumode from here on
NOT_AN_ACCESS = 255  # the code of what is no memory access

Samples = Mapping[str, NDArray[Any]]
Rows = NDArray[np.int64]
Codes = NDArray[np.uint8]
_SAMPLES = ("time", "pid", "tid", "cpu", "ip", "addr", "phys_addr", "weight", "data_src", "event", "cpumode")
_ACCESSES = {
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


# The columns as the native loop numbers them.
EXTRACTED = ("time", "pid", "tid", "cpu", "ip", "addr", "phys_addr", "period", "weight", "data_src")
_STEP = 1 << 16


class _Samples(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in _SAMPLES]


class _Facts(ctypes.Structure):
    _fields_ = (("first", ctypes.c_int64), ("seen", ctypes.c_void_p))


class ChosenFacts:
    """What all chosen samples together say. first: the earliest time; pids: of their processes."""

    def __init__(self) -> None:
        self._seen = np.zeros(LARGEST_TID + 2, np.bool_)  # the last place is for what was not chosen
        self.native = _Facts(np.iinfo(np.int64).max, self._seen.ctypes.data)

    @property
    def first(self) -> int:
        return int(self.native.first)

    @property
    def pids(self) -> frozenset[int]:
        return frozenset(np.flatnonzero(self._seen[:-1]).tolist())


class _Accesses(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in _ACCESSES]


class _Rules(ctypes.Structure):
    _fields_ = (
        ("kinds", ctypes.c_void_p),
        ("load_bit", ctypes.c_uint64),
        ("store_bit", ctypes.c_uint64),
        ("largest_tid", ctypes.c_int64),
        ("load", ctypes.c_uint8),
        ("store", ctypes.c_uint8),
        ("none", ctypes.c_uint8),
        ("first_guest", ctypes.c_uint8),
    )


class _Levels(ctypes.Structure):
    _fields_ = (
        ("old", ctypes.c_void_p),
        ("numbered", ctypes.c_void_p),
        ("old_mask", ctypes.c_uint64),
        ("number_mask", ctypes.c_uint64),
        ("hops_mask", ctypes.c_uint64),
        ("old_shift", ctypes.c_int32),
        ("number_shift", ctypes.c_int32),
        ("hops_shift", ctypes.c_int32),
        ("hops_bits", ctypes.c_int32),
        ("unknown", ctypes.c_uint8),
    )


class Place(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in ("offset", "width", "column"))


class Extract(ctypes.Structure):
    _fields_ = (
        ("fields", ctypes.c_void_p),
        ("field_count", ctypes.c_int64),
        ("rules", _Rules),
        ("has_cpu", ctypes.c_void_p),
        ("levels", _Levels),
        ("facts", ctypes.c_void_p),
        ("unrecorded", ctypes.c_void_p),
        ("out", _Accesses),
        ("codes", ctypes.c_void_p),
        ("period_sums", ctypes.c_void_p),
        ("without_period", ctypes.c_void_p),
        ("kinds", ctypes.c_int64),
        ("swap", ctypes.c_int64),
    )


@cache
def library() -> ctypes.CDLL:
    native = load_native("profiler", "perfdata")
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    samples, rules = ctypes.POINTER(_Samples), ctypes.POINTER(_Rules)
    levels, accesses = ctypes.POINTER(_Levels), ctypes.POINTER(_Accesses)
    facts = ctypes.POINTER(_Facts)
    native.perfdata_choose.argtypes = [samples, number, rules, pointer, pointer, facts]
    native.perfdata_choose.restype = number
    native.perfdata_convert.argtypes = [samples, pointer, pointer, number, rules, pointer, levels, accesses]
    native.perfdata_convert.restype = None
    native.perfdata_extract.argtypes = [*[pointer] * 4, number, ctypes.POINTER(Extract)]
    native.perfdata_extract.restype = number
    native.perfdata_periods.argtypes = [*[pointer] * 4, number, number, pointer, pointer]
    native.perfdata_periods.restype = None
    return native


def choose_rows(samples: Samples, kinds: Codes, facts: ChosenFacts) -> tuple[Rows, Codes]:
    """Rows of the samples that are accesses of user programs, and the code of each.

    kinds: code by event, NOT_AN_ACCESS where it says nothing of memory; samples: whole columns as decoded;
    facts: to add to.
    """
    count = len(samples["time"])
    rows, codes = np.empty(count, np.int64), np.empty(count, np.uint8)
    rules = rules_of(kinds)
    found = library().perfdata_choose(
        _pointers(samples), count, rules, rows.ctypes.data, codes.ctypes.data, facts.native
    )
    return rows[:found], codes[:found]


def convert_rows(
    samples: Samples, rows: Rows, codes: Codes, has_cpu: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """The columns of a SampleBlock of the chosen rows, all but node and event. has_cpu: by event."""
    rows, codes = np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(codes)
    out = access_columns(len(rows), bool(samples["phys_addr"].any()))
    library().perfdata_convert(
        _pointers(samples),
        rows.ctypes.data,
        codes.ctypes.data,
        len(rows),
        rules_of(codes),
        has_cpu.ctypes.data,
        levels_of(level_tables()),
        pointers_to(out, 0),
    )
    return out


def access_columns(rows: int, with_phys: bool) -> dict[str, NDArray[Any]]:
    """Columns to fill; physical addresses, which most recordings have none of, may share what is zero."""
    columns: dict[str, NDArray[Any]] = {
        name: np.empty(rows, kind) for name, kind in _ACCESSES.items() if with_phys or name != "phys_addr"
    }
    return columns if with_phys else {**columns, "phys_addr": _zeros(-(-rows // _STEP) * _STEP)[:rows]}


def pointers_to(columns: Mapping[str, NDArray[Any]], row: int) -> _Accesses:
    return _Accesses(
        **{
            name: column.ctypes.data + row * column.itemsize if column.flags.writeable else None
            for name, column in columns.items()
        }
    )


@cache
def _zeros(count: int) -> NDArray[np.uint64]:
    """Zeros that all blocks share."""
    zeros = np.zeros(count, np.uint64)
    zeros.flags.writeable = False
    return zeros


def add_periods(
    samples: Samples, rows: Rows, codes: Codes, sums: NDArray[np.float64], without: NDArray[np.int64]
) -> None:
    """Add the chosen rows to sums (2, kinds): periods, and how many; others to without (events, kinds)."""
    rows, codes = np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(codes, np.uint8)
    period = np.ascontiguousarray(samples["period"], np.uint64)
    event = np.ascontiguousarray(samples["event"], np.int32)
    library().perfdata_periods(
        period.ctypes.data,
        event.ctypes.data,
        rows.ctypes.data,
        codes.ctypes.data,
        len(rows),
        sums.shape[1],
        sums.ctypes.data,
        without.ctypes.data,
    )


def _pointers(samples: Samples) -> _Samples:
    return _Samples(*(samples[name].ctypes.data for name in _SAMPLES))


def rules_of(kinds: Codes) -> _Rules:
    return _Rules(
        kinds.ctypes.data,
        LOAD,
        STORE,
        LARGEST_TID,
        EVENT_CODE["load"],
        EVENT_CODE["store"],
        NOT_AN_ACCESS,
        FIRST_GUEST,
    )


def levels_of(tables: LevelTables) -> _Levels:
    return _Levels(
        tables.old.ctypes.data,
        tables.numbered.ctypes.data,
        len(tables.old) - 1,
        tables.numbered.shape[0] - 1,
        tables.numbered.shape[1] - 1,
        tables.old_shift,
        tables.number_shift,
        tables.hops_shift,
        tables.numbered.shape[1].bit_length() - 1,
        tables.unknown,
    )
