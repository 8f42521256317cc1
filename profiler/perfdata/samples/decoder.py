"""Sample records into columns, a block at a time."""

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..file.attrs import Attr
from .columns import Columns
from .group_reads import Grouped, GroupReads, reads_groups
from .layout import Layout, field_lengths, id_offset, layout_of
from .native import Found, IdTable, Ints, column, gather

Buffer = NDArray[np.uint8]
Flags = NDArray[np.bool_]
_SMALLEST_FIELD = 8


class SampleDecoder:
    """Decodes the samples of the given events into `columns`, in the order they come.

    short: how many were left out because a field reaches beyond its record; unknown: because no event has
    their id.
    """

    def __init__(self, order: str) -> None:
        self.columns = Columns()
        self.short = 0
        self.unknown = 0
        self._order = order
        self._names: Sequence[str] = ()
        self._swap = (order == "<") != (sys.byteorder == "little")
        self._layouts: list[Layout] = []
        self._gaps = False  # whether there may be columns that some of the samples do not fill
        self._layout_of_event = np.zeros(0, dtype=np.int32)
        self._id_offsets: list[int] = []
        self._offset_of_event = np.zeros(0, dtype=np.int64)
        self._ids = IdTable({})
        self._groups = GroupReads()

    def set_events(self, attrs: Sequence[Attr], names: Sequence[str]) -> None:
        """The events as known so far, and their names; in a pipe they come between the records."""
        self._names = names
        kinds: dict[Layout, int] = {}
        of_event = [kinds.setdefault(layout_of(attr, self._order), len(kinds)) for attr in attrs]
        self._layouts = list(kinds)
        self._gaps = len(kinds) > 1 or any(map(reads_groups, kinds))
        self._layout_of_event = np.array(of_event, dtype=np.int32)
        offsets = [id_offset(attr) for attr in attrs]
        self._offset_of_event = np.array([-1 if at is None else at for at in offsets], dtype=np.int64)
        known = list(dict.fromkeys(at for at in offsets if at is not None))
        self._id_offsets = known if len(attrs) > 1 else []
        ids = {number: index for index, attr in reversed(list(enumerate(attrs))) for number in attr.ids}
        # What perf makes up itself carries the id 0 and belongs to the first event. Where ids may stand at
        # several places a 0 says nothing.
        self._ids = IdTable(ids if len(known) > 1 else {0: 0, **ids})

    def set_names(self, names: Sequence[str]) -> None:
        """Other names of the same events."""
        self._names = names

    def expect(self, data_bytes: int) -> None:
        """Prepare for the samples that so many bytes of records can hold."""
        sizes = [sum(section.size for section in layout.sections) for layout in self._layouts]
        self.columns.expect(data_bytes // min(sizes, default=data_bytes + 1))

    def decode(self, buffer: Buffer, samples: Found) -> None:
        """Append the samples that were found in `buffer`."""
        if not self._layouts:
            self.unknown += len(samples.positions)
        elif len(samples.positions):
            self.columns.reserve(len(samples.positions))
            if self._gaps:
                self.columns.blank(len(samples.positions))
            if self._id_offsets:
                self._decode_by_id(buffer, samples)
            else:
                self._decode_alike(buffer, samples, None)

    def _decode_alike(self, buffer: Buffer, samples: Found, events: NDArray[np.int32] | None) -> None:
        """Samples of one layout. events: None where all are the first event's."""
        layout = self._layouts[0]
        starts, good = self._locate(layout, buffer, samples.positions, samples.sizes)
        modes = samples.modes
        if good is not None:
            self.short += int(len(good) - good.sum())
            starts, modes = [start[good] for start in starts], modes[good]
            events = events[good] if events is not None else None
        self._copy(layout, buffer, starts, modes, None)
        first, self.columns.count = self.columns.count, self.columns.count + len(modes)
        if events is not None:
            self.columns.fill("event")[first : self.columns.count] = events
        if reads_groups(layout):
            self._expand(buffer, [Grouped(layout, np.arange(first, self.columns.count), starts[0])])

    def _decode_by_id(self, buffer: Buffer, samples: Found) -> None:
        events = self._events_of(buffer, samples.positions, samples.sizes)
        known = events >= 0
        if not known.all():
            self.unknown += int(len(known) - known.sum())
            positions, sizes, modes = samples
            samples = Found(positions[known], sizes[known], modes[known])
            events = events[known]
        if len(self._layouts) == 1:
            self._decode_alike(buffer, samples, events)
        else:
            self._decode_events(buffer, samples, events)

    def _events_of(self, buffer: Buffer, samples: Ints, sizes: Ints) -> NDArray[np.int32]:
        """The event of each sample by its id, -1 for unknown ones.

        Events may carry their ids at different places: the first place counts whose id stands for an event
        that has it there.
        """
        found: NDArray[np.int32] | None = None
        for id_at in self._id_offsets:
            whole = sizes >= id_at + _SMALLEST_FIELD
            ids = column(buffer, np.where(whole, samples + id_at, samples), 8, self._swap)
            events = np.where(whole, self._ids.find(ids), np.int32(-1))
            if len(self._id_offsets) > 1:
                events = np.where(self._offset_of_event[events] == id_at, events, np.int32(-1))
            found = events if found is None else np.where(found >= 0, found, events)
        assert found is not None  # there is at least one place
        return found

    def _decode_events(self, buffer: Buffer, found: Found, events: NDArray[np.int32]) -> None:
        """Copies the fields and events of the samples that are whole."""
        samples, sizes, modes = found
        kinds = self._layout_of_event[events]
        good = np.ones(len(samples), dtype=np.bool_)
        located: list[tuple[Layout, Ints, list[Ints]]] = []
        for kind in np.unique(kinds).tolist():
            layout, rows = self._layouts[kind], np.flatnonzero(kinds == kind)
            starts, fits = self._locate(layout, buffer, samples[rows], sizes[rows])
            if fits is not None:
                good[rows] = fits
                rows, starts = rows[fits], [start[fits] for start in starts]
            located.append((layout, rows, starts))
        target = np.cumsum(good) - 1
        for layout, rows, starts in located:
            self._copy(layout, buffer, starts, modes[rows], target[rows])
        self.short += int(len(good) - good.sum())
        kept = events[good]
        first, self.columns.count = self.columns.count, self.columns.count + len(kept)
        self.columns.fill("event")[first : self.columns.count] = kept
        groups = [
            Grouped(layout, first + target[rows], starts[0])
            for layout, rows, starts in located
            if reads_groups(layout)
        ]
        self._expand(buffer, groups)

    def _expand(self, buffer: Buffer, groups: Sequence[Grouped]) -> None:
        self._groups.expand(self.columns, buffer, groups, self._ids, self._swap)

    def _locate(
        self, layout: Layout, buffer: Buffer, samples: Ints, sizes: Ints
    ) -> tuple[list[Ints], Flags | None]:
        """Where each section of each sample starts, and which samples hold all their sections (None: all)."""
        if len(layout.sections) == 1:
            bad = sizes < layout.sections[0].size
            return [samples], ~bad if bad.any() else None
        starts, ends = [samples], samples + sizes
        end = samples + layout.sections[0].size
        bad = end > ends
        for section in layout.sections[1:]:
            # A sample found bad stays at its own start, where there is always something to read.
            bad |= end + _SMALLEST_FIELD > ends
            at = np.where(bad, samples, end)
            start = at + field_lengths(section.after, layout, buffer, at, self._swap)
            end = start + section.size
            bad |= end > ends
            starts.append(start)
        return starts, ~bad if bad.any() else None

    def _copy(
        self, layout: Layout, buffer: Buffer, starts: list[Ints], modes: NDArray[np.uint8], rows: Ints | None
    ) -> None:
        columns, first = self.columns, self.columns.count
        columns.fill("cpumode")[first + rows if rows is not None else slice(first, first + len(modes))] = (
            modes
        )
        for section, start in zip(layout.sections, starts, strict=True):
            fields = [
                (offset, width, columns.fill(name), first)
                for name, offset, width in section.columns
                if name in columns
            ]
            if fields and len(start):
                gather(buffer, start, rows, fields, self._swap)
