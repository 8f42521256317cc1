"""Sample records straight into memory accesses: what a trace wants, without all that it leaves out.

Records whose fields have fixed places, nearly all there are, never become columns of 64 bits; others do, a
piece at a time, and are chosen and converted from those.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...sample_block import SampleBlock
from ..file.attrs import Attr
from ..processes.records import ThreadSpan
from ..processes.unrecorded import NativeSearch, UnrecordedThreads
from ..samples.decoder import Buffer, SampleDecoder
from ..samples.native import Found
from .conversion import block_of, has_cpu, sample_block
from .data_source import level_tables
from .event_kinds import PeriodCounter, event_codes
from .native import (
    EXTRACTED,
    ChosenFacts,
    Codes,
    Extract,
    Place,
    access_columns,
    choose_rows,
    levels_of,
    library,
    pointers_to,
    rules_of,
)

_BLOCK = 1 << 16  # accesses
_PIECE = 1 << 14  # records that come at once, at most


class AccessDecoder(SampleDecoder):
    """Collects the accesses of a recording in `ready`, times as in the file and nodes not known.

    chosen, counter: what they say together, and their periods.
    """

    def __init__(self, order: str) -> None:
        super().__init__(order)
        self.ready: list[SampleBlock] = []
        self.chosen = ChosenFacts()
        self.counter = PeriodCounter()
        self.unrecorded = UnrecordedThreads([])
        self._extractor: _Extractor | None = None

    def search_unrecorded(self, recorded: Sequence[ThreadSpan]) -> None:
        """Search for threads that are not among those of the records, a list that grows."""
        self.unrecorded = UnrecordedThreads(recorded)

    def set_events(self, attrs: Sequence[Attr], names: Sequence[str]) -> None:
        """See SampleDecoder."""
        self.flush()
        super().set_events(attrs, names)
        self._kinds = event_codes(names)
        self._with_cpu = has_cpu([attr.sample_type for attr in attrs])
        self._extractor = None
        if len(self._layouts) == 1 and len(self._layouts[0].sections) == 1:
            (section,) = self._layouts[0].sections
            periods = self.counter.arrays(len(attrs))
            self._extractor = _Extractor(
                section.columns, self._kinds, self._with_cpu, self._swap, periods, self.chosen
            )

    def decode(self, buffer: Buffer, samples: Found) -> None:
        """Take the samples that were found in `buffer`."""
        super().decode(buffer, samples)
        if self.columns.count:
            self._convert()

    def _decode_alike(self, buffer: Buffer, samples: Found, events: NDArray[np.int32] | None) -> None:
        extractor = self._extractor
        short = samples.sizes < self._layouts[0].sections[0].size
        if extractor is None or len(short) > _PIECE or short.any():
            super()._decode_alike(buffer, samples, events)
            return
        if extractor.room < len(short):
            self.flush()
        extractor.extract(buffer, samples, events, self.unrecorded.begin(len(short)))
        self.unrecorded.end()

    def _convert(self) -> None:
        """Make accesses of the samples that were decoded into columns."""
        self.flush()
        samples = self.columns.finish()
        self.unrecorded.search(samples)
        rows, codes = choose_rows(samples, self._kinds, self.chosen)
        self.counter.add(samples, rows, codes)
        if len(rows):
            self.ready.append(block_of(samples, rows, codes, self._with_cpu))
        self.columns.clear()

    def flush(self) -> None:
        """Put what was collected into `ready`."""
        if self._extractor is not None:
            columns, codes = self._extractor.take(_BLOCK)
            if len(codes):
                self.ready.append(sample_block(columns, codes))


class _Extractor:
    """Takes accesses out of records whose fields have fixed places, and collects them.

    fields: (column, offset, width) as in a layout; kinds, with_cpu: by event, as for `choose_rows` and
    `convert_rows`; periods: the arrays of `add_periods`; chosen: to add to.
    """

    def __init__(
        self,
        fields: Sequence[tuple[str, int, int]],
        kinds: Codes,
        with_cpu: NDArray[np.bool_],
        swap: bool,
        periods: tuple[NDArray[np.float64], NDArray[np.int64]],
        chosen: ChosenFacts,
    ) -> None:
        places = [
            Place(offset, width, EXTRACTED.index(name)) for name, offset, width in fields if name in EXTRACTED
        ]
        self._fields = (Place * len(places))(*places)
        self._has_phys = any(name == "phys_addr" for name, _offset, _width in fields)
        self._kept = kinds, with_cpu, periods, chosen  # the pointers are into these
        sums, without = periods
        self._native = Extract(
            fields=ctypes.addressof(self._fields),
            field_count=len(places),
            rules=rules_of(kinds),
            has_cpu=with_cpu.ctypes.data,
            levels=levels_of(level_tables()),
            facts=ctypes.addressof(chosen.native),
            period_sums=sums.ctypes.data,
            without_period=without.ctypes.data,
            kinds=sums.shape[1],
            swap=int(swap),
        )
        self._begin(0)

    def _begin(self, room: int) -> None:
        self._count, self._size = 0, room
        self._columns = access_columns(room, self._has_phys)
        self._codes = np.empty(room, np.uint8)

    @property
    def room(self) -> int:
        """How many records can be taken before `take` must be."""
        return self._size - self._count

    def extract(
        self, buffer: Buffer, found: Found, events: NDArray[np.int32] | None, unrecorded: NativeSearch
    ) -> None:
        """Add the accesses among the records; the caller has checked that they hold the fields.

        There must be `room` for all of them.
        """
        native = self._native
        native.unrecorded = ctypes.addressof(unrecorded)
        native.out = pointers_to(self._columns, self._count)
        native.codes = self._codes.ctypes.data + self._count
        self._count += library().perfdata_extract(
            buffer.ctypes.data,
            found.positions.ctypes.data,
            found.modes.ctypes.data,
            None if events is None else events.ctypes.data,
            len(found.positions),
            native,
        )

    def take(self, room: int) -> tuple[dict[str, NDArray[Any]], Codes]:
        """The columns of a SampleBlock so far (all but node and event), and codes; room: for what follows."""
        columns = {name: column[: self._count] for name, column in self._columns.items()}
        codes = self._codes[: self._count]
        self._begin(room)
        return columns, codes
