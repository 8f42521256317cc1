"""Sample records straight into memory accesses: what a trace wants, without all that it leaves out.

Records whose fields have fixed places, nearly all there are, never become columns of 64 bits; others do, a
piece at a time, and are chosen and converted from those.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...sample_block import SampleBlock
from ..file.attrs import CALLCHAIN, CPU, Attr
from ..processes.records import ThreadSpan
from ..processes.unrecorded import UnrecordedThreads
from ..samples.decoder import Buffer, SampleDecoder
from ..samples.group_reads import Grouped
from ..samples.layout import Layout, Section
from ..samples.native import Found, Ints
from .callers import Callers
from .collector import Collector
from .event_kinds import PeriodCounter, event_codes, of_amd, tell_alike
from .native import ChosenFacts
from .operations import Operations

_BLOCK = 1 << 16  # accesses


class AccessDecoder(SampleDecoder):
    """Collects the accesses of a recording in `ready`, times as in the file and nodes not known.

    chosen, counter: what they say together, and their periods; callers: the calls that they were made in.
    """

    def __init__(self, order: str) -> None:
        super().__init__(order)
        self.ready: list[SampleBlock] = []
        self.chosen = ChosenFacts()
        self.counter = PeriodCounter()
        self.callers = Callers()
        self.unrecorded = UnrecordedThreads([])
        self._plain: Section | None = None  # where all samples have these fields, and no others
        self._collector: Collector | None = None
        self._operations = Operations()
        self._alike = False  # whether several samples may tell of one operation

    def search_unrecorded(self, recorded: Sequence[ThreadSpan]) -> None:
        """Search for threads that are not among those of the records, a list that grows."""
        self.unrecorded = UnrecordedThreads(recorded)

    def set_events(self, attrs: Sequence[Attr], names: Sequence[str]) -> None:
        """See SampleDecoder."""
        self.flush()
        super().set_events(attrs, names)
        self._cpu_of_event = np.array([bool(attr.sample_type & CPU) for attr in attrs], np.bool_)
        self._collect()

    def set_names(self, names: Sequence[str]) -> None:
        """See SampleDecoder."""
        if list(names) != list(self._names):
            self.flush()
            super().set_names(names)
            self._collect()

    def _collect(self) -> None:
        """Begin to collect accesses of the events as they are now."""
        sections = [section for layout in self._layouts for section in layout.sections]
        self._plain = sections[0] if len(sections) == 1 else None
        self._alike = tell_alike(self._names)
        self._collector = Collector(
            event_codes(self._names),
            self._cpu_of_event,
            of_amd(self._names),
            any(name == "phys_addr" for section in sections for name, _offset, _width in section.columns),
            self._plain.columns if self._plain else (),
            self._swap,
            self.counter.arrays(len(self._names)),
            self.chosen,
        )

    def decode(self, buffer: Buffer, samples: Found) -> None:
        """Take the samples that were found in `buffer`."""
        super().decode(buffer, samples)
        if count := self.columns.count:  # those that were decoded into columns
            self._collector_for(count).collect(self.columns.finish(), self.unrecorded.begin(count))
            self.unrecorded.end()
            self.columns.clear()

    def _decode_alike(self, buffer: Buffer, samples: Found, events: NDArray[np.int32] | None) -> None:
        if self._plain is None or (samples.sizes < self._plain.size).any():
            super()._decode_alike(buffer, samples, events)
            return
        count = len(samples.positions)
        self._collector_for(count).extract(buffer, samples, events, self.unrecorded.begin(count))
        self.unrecorded.end()

    def _copy(
        self, layout: Layout, buffer: Buffer, starts: list[Ints], modes: NDArray[np.uint8], rows: Ints | None
    ) -> None:
        super()._copy(layout, buffer, starts, modes, rows)
        first, columns = self.columns.count, self.columns
        where = slice(first, first + len(modes)) if rows is None else first + rows
        for number, section in enumerate(layout.sections):
            if section.after == CALLCHAIN:
                places = starts[number - 1] + layout.sections[number - 1].size
                ips, pids = (columns.fill(name)[where] for name in ("ip", "pid"))
                columns.fill("call")[where] = self.callers.find(buffer, places, ips, pids, self._swap)

    def _expand(self, buffer: Buffer, groups: Sequence[Grouped]) -> None:
        """Only the event that was sampled is an access: what others of its group counted is none."""

    def _collector_for(self, samples: int) -> Collector:
        """The collector, with room for so many."""
        assert self._collector is not None  # events are known before samples come
        if self._collector.room < samples:
            self.flush(max(samples, _BLOCK))
        return self._collector

    def flush(self, room: int = 0) -> None:
        """Put what was collected into `ready`, and make room for what follows."""
        if self._collector is not None:
            columns, codes = self._collector.take(room)
            if len(codes):
                node, reach = np.full(len(codes), -1, np.int32), np.full(len(codes), -1, np.int8)
                block = SampleBlock(node=node, reach=reach, event=codes, **columns)
                if len(block := self._operations.once(block) if self._alike else block):
                    self.ready.append(block)
