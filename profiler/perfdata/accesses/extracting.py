"""Accesses out of records whose fields have fixed places, without columns of samples in between."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..processes.unrecorded import NativeSearch
from ..samples.native import Found
from .data_source import level_tables
from .native import (
    ChosenFacts,
    Codes,
    Extract,
    Place,
    access_columns,
    levels_of,
    library,
    pointers_to,
    rules_of,
)

# The columns as the native loop numbers them.
_EXTRACTED = ("time", "pid", "tid", "cpu", "ip", "addr", "phys_addr", "period", "weight", "data_src")


class Extractor:
    """Takes accesses out of records whose fields have fixed places, and collects them.

    fields: (column, offset, width) as in a layout; kinds, with_cpu: by event, as for `choose_rows` and
    `convert_rows`; periods: the arrays of `add_periods`, or None to leave them out.
    """

    def __init__(
        self,
        fields: Sequence[tuple[str, int, int]],
        kinds: Codes,
        with_cpu: NDArray[np.bool_],
        swap: bool,
        periods: tuple[NDArray[np.float64], NDArray[np.int64]] | None,
    ) -> None:
        wanted = [
            (offset, width, _EXTRACTED.index(name)) for name, offset, width in fields if name in _EXTRACTED
        ]
        self._fields = (Place * len(wanted))(*(Place(*one) for one in wanted))
        self._has_phys = any(name == "phys_addr" for name, _offset, _width in fields)
        self._kept = kinds, with_cpu, periods  # the pointers are into these
        self._native = Extract(
            fields=ctypes.addressof(self._fields),
            field_count=len(wanted),
            rules=rules_of(kinds, 0),
            has_cpu=with_cpu.ctypes.data,
            levels=levels_of(level_tables()),
            swap=int(swap),
        )
        if periods is not None:
            told, untold = periods
            self._native.told, self._native.untold = told.ctypes.data, untold.ctypes.data
            self._native.kinds = told.shape[1]
        self._begin(0)

    def _begin(self, room: int) -> None:
        self.count, self._size = 0, room
        self._columns = access_columns(room, self._has_phys)
        self._codes = np.empty(room, np.uint8)

    @property
    def room(self) -> int:
        """How many records can be taken before `take` must be."""
        return self._size - self.count

    def extract(
        self,
        buffer: NDArray[np.uint8],
        found: Found,
        events: NDArray[np.int32] | None,
        facts: ChosenFacts,
        unrecorded: NativeSearch,
    ) -> None:
        """Add the accesses among the records; the caller has checked that they hold the fields.

        There must be `room` for all of them.
        """
        native = self._native
        native.rules.largest_tid = facts.largest_tid
        native.facts, native.unrecorded = ctypes.addressof(facts.native), ctypes.addressof(unrecorded)
        native.out = pointers_to(self._columns, self.count)
        native.codes = self._codes.ctypes.data + self.count
        self.count += library().perfdata_extract(
            buffer.ctypes.data,
            found.positions.ctypes.data,
            found.modes.ctypes.data,
            None if events is None else events.ctypes.data,
            len(found.positions),
            native,
        )

    def take(self, room: int) -> tuple[dict[str, NDArray[Any]], Codes]:
        """The columns of a SampleBlock so far (all but node and event), and codes; room: for what follows."""
        columns = {name: column[: self.count] for name, column in self._columns.items()}
        codes = self._codes[: self.count]
        self._begin(room)
        return columns, codes
