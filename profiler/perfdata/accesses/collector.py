"""Accesses taken out of samples into the columns of a block."""

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..processes.unrecorded import NativeSearch
from ..samples.native import Found
from .native import (
    ACCESSES,
    EXTRACTED,
    SAMPLES,
    AccessColumns,
    ChosenFacts,
    Codes,
    Collect,
    Place,
    SampleColumns,
    levels_of,
    library,
    rules_of,
)

_STEP = 1 << 16


class Collector:
    """Takes the accesses of user programs out of samples, and collects them.

    kinds: code by event, as event_codes gives them; has_cpu, by_amd: by event; with_phys: some
    tell physical addresses; fields: (column, offset, width) in records whose fields have fixed places, as in
    a layout; swap: they are of the other byte order; periods, facts: what to add to, the first a
    PeriodCounter's arrays.
    """

    def __init__(
        self,
        kinds: Codes,
        has_cpu: NDArray[np.bool_],
        by_amd: NDArray[np.bool_],
        with_phys: bool,
        fields: Sequence[tuple[str, int, int]],
        swap: bool,
        periods: tuple[NDArray[np.float64], NDArray[np.int64]],
        facts: ChosenFacts,
    ) -> None:
        self._with_phys, self._swap = with_phys, int(swap)
        places = [
            Place(offset, width, EXTRACTED.index(name)) for name, offset, width in fields if name in EXTRACTED
        ]
        self._places = (Place * len(places))(*places)
        self._kept = kinds, has_cpu, by_amd, periods, facts  # the pointers are into these
        sums, without = periods
        self._native = Collect(
            rules=rules_of(kinds, has_cpu),
            levels=levels_of(by_amd),
            facts=ctypes.addressof(facts.native),
            period_sums=sums.ctypes.data,
            without_period=without.ctypes.data,
            kinds=sums.shape[1],
        )
        self._begin(0)

    def _begin(self, room: int) -> None:
        self._count, self._size = 0, room
        self._columns = _columns(room, self._with_phys)
        self._codes = np.empty(room, np.uint8)
        self._calls = np.zeros(room, np.int32)

    @property
    def room(self) -> int:
        """How many samples can be taken before `take` must be."""
        return self._size - self._count

    def collect(self, samples: Mapping[str, NDArray[Any]], unrecorded: NativeSearch) -> None:
        """Add the accesses among decoded samples, whole columns. There must be `room` for all of them."""
        count = len(samples["time"])
        rows = np.empty(count, np.int64)
        columns = SampleColumns(*(samples[name].ctypes.data for name in SAMPLES))
        self._aim(unrecorded)
        found = library().perfdata_collect(columns, count, self._native, rows.ctypes.data)
        self._calls[self._count : self._count + found] = samples["call"][rows[:found]]
        self._count += found

    def extract(
        self,
        buffer: NDArray[np.uint8],
        found: Found,
        events: NDArray[np.int32] | None,
        unrecorded: NativeSearch,
    ) -> None:
        """The same for records, of which the caller has checked that they hold the fields.

        events: of each; None: all are the first.
        """
        self._aim(unrecorded)
        self._count += library().perfdata_extract(
            buffer.ctypes.data,
            found.positions.ctypes.data,
            found.modes.ctypes.data,
            None if events is None else events.ctypes.data,
            len(found.positions),
            self._places,
            len(self._places),
            self._swap,
            self._native,
        )

    def _aim(self, unrecorded: NativeSearch) -> None:
        """Have the next accesses put behind those that are there."""
        self._native.unrecorded = ctypes.addressof(unrecorded)
        self._native.codes = self._codes.ctypes.data + self._count
        self._native.out = AccessColumns(
            **{
                name: column.ctypes.data + self._count * column.itemsize if column.flags.writeable else None
                for name, column in self._columns.items()
            }
        )

    def take(self, room: int) -> tuple[dict[str, NDArray[Any]], Codes]:
        """The columns of a SampleBlock so far (all but node and event), and codes; room: for what follows."""
        columns = {name: self._cut(column) for name, column in self._columns.items()}
        columns["call"] = self._calls[: self._count] - np.int32(1)
        codes = self._cut(self._codes)
        self._begin(room)
        return columns, codes

    def _cut(self, column: NDArray[Any]) -> NDArray[Any]:
        """What is filled; a copy where that is little, since a slice holds all of it in memory."""
        filled = column[: self._count]
        return filled.copy() if self._count < self._size // 2 and column.flags.writeable else filled


def _columns(rows: int, with_phys: bool) -> dict[str, NDArray[Any]]:
    """Columns to fill; physical addresses, which most recordings have none of, may share what is zero."""
    columns: dict[str, NDArray[Any]] = {
        name: np.empty(rows, kind) for name, kind in ACCESSES.items() if with_phys or name != "phys_addr"
    }
    return columns if with_phys else {**columns, "phys_addr": _zeros(-(-rows // _STEP) * _STEP)[:rows]}


@cache
def _zeros(count: int) -> NDArray[np.uint64]:
    """Zeros that all blocks share."""
    zeros = np.zeros(count, np.uint64)
    zeros.flags.writeable = False
    return zeros
