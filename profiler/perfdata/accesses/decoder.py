"""Sample records straight into memory accesses: what a trace wants, without all that it leaves out.

Records whose fields have fixed places, nearly all there are, never become columns of 64 bits; others do, a
piece at a time, and are chosen and converted from those.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...recorded import SampleBlock
from ..file.attrs import Attr
from ..processes.records import ThreadSpan
from ..processes.unrecorded import LARGEST_TID, UnrecordedThreads
from ..samples.decoder import Buffer, SampleDecoder
from ..samples.native import Found
from .conversion import block_of, has_cpu, sample_block
from .event_kinds import PeriodCounter, event_codes
from .extracting import Extractor
from .native import ChosenFacts, choose_rows

_BLOCK = 1 << 16  # accesses
_PIECE = 1 << 14  # records that come at once, at most


class AccessDecoder(SampleDecoder):
    """Collects the accesses of a recording in `ready`, times as in the file and nodes not known.

    chosen, counter: what they say together, and their periods.
    """

    def __init__(self, order: str) -> None:
        super().__init__(order)
        self.ready: list[SampleBlock] = []
        self.chosen = ChosenFacts(LARGEST_TID)
        self.counter = PeriodCounter()
        self.unrecorded = UnrecordedThreads([])
        self._extractor: Extractor | None = None

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
            self._extractor = Extractor(section.columns, self._kinds, self._with_cpu, self._swap, periods)

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
        extractor.extract(buffer, samples, events, self.chosen, self.unrecorded.begin(len(short)))
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
