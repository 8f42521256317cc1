"""Walk the records of a perf.data file and pass each to its decoder."""

import struct
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .file.events import Events
from .file.features import (
    BUILD_ID,
    EVENT_DESC,
    PMU_MAPPINGS,
    read_build_ids,
    read_event_desc,
    read_feature,
    read_thread_map,
)
from .file.header import read_head
from .file.source import PerfDataError, Source
from .file.zstd import Inflater
from .processes import records
from .samples import native
from .samples.decoder import SampleDecoder

Buffer = NDArray[np.uint8]

# Records that change how the following ones are read, or bring data of their own.
_STOPS = (64, 65, 66, 67, 70, 71, 73, 78, 79, 80, 81, 83)
ATTR, EVENT_TYPE, TRACING_DATA, HEADER_BUILD_ID, AUXTRACE_INFO, AUXTRACE = _STOPS[:6]
THREAD_MAP, EVENT_UPDATE, TIME_CONV, FEATURE, COMPRESSED, COMPRESSED2 = _STOPS[6:]
_BLOCK = 1 << 14  # records a walk: their bytes stay in the cache until they are decoded
_EXPECTED_RATIO = 8
_HINT = "record again"


class Reader:
    """Reads one recording: `read` the file and, of a directory, the further ones; then take the parts."""

    def __init__(self, source: Source, decoder: type[SampleDecoder] = SampleDecoder) -> None:
        self.name = source.name
        self.warnings: list[str] = []
        self.head = read_head(source.data.data, source.name, self.warnings)
        self.header: dict[str, Any] = {}
        self.build_ids: dict[str, str] = {}
        order = self.head.order
        self.events = Events(self.head.attrs, order)
        self.samples = decoder(order)
        self.records = records.RecordReader(order)
        self._order = order
        self._inflater: Inflater | None = None
        self._walker = native.Walker(_treatment(), (order == "<") != (sys.byteorder == "little"), _BLOCK)
        self._events_changed = self._names_changed = True
        self._described = b""
        self._read_features(source.data)
        self._passed: Callable[[int], None] = source.passed

    @property
    def counts(self) -> dict[int, int]:
        """Records by type; those of type 256 and above count as 256."""
        return {kind: int(count) for kind, count in enumerate(self._walker.counts) if count}

    def read(self, source: Source, start: int, end: int) -> Iterator[None]:
        """Read records from start to end, piece by piece: whoever asks may take the samples out in between.

        Damage ends it with a warning, or PerfDataError if nothing came before.
        """
        self.name, self._passed = source.name, source.passed
        self._inflater = None  # each file of a directory has a stream of its own
        self._settle_events()
        try:
            damage = yield from self._walk(source.data, start, end)
        except PerfDataError as error:
            damage = error.what
        if self._inflater is not None and self._inflater.cut and not damage:
            damage = f"{self.name}: the compressed data end within a record"
        if damage:
            if not self._walker.counts.any():
                raise PerfDataError(damage, _HINT)
            self.warnings.append(f"{damage}; what comes before was read")

    def expect(self) -> None:
        """Take address space for the samples that the whole file can hold, for reading them all at once."""
        ratio = _EXPECTED_RATIO if "compressed" in self.header else 1
        self._settle_events()
        self.samples.expect((self.head.data_end - self.head.data_start) * ratio)

    def finish(self) -> None:
        """Put what was left out into the warnings."""
        if self.samples.short:
            self.warnings.append(f"{self.samples.short} samples are shorter than their event says: left out")
        if self.samples.unknown:
            self.warnings.append(f"{self.samples.unknown} samples belong to no known event: left out")
        if self.records.damaged:
            self.warnings.append(f"{self.records.damaged} records are too short for their kind: left out")
        if self.records.impossible:
            self.warnings.append(f"{self.records.impossible} records count impossible losses: left out")

    def _settle_events(self) -> None:
        """Tell of new events when the next records need them: a pipe can bring thousands, one by one."""
        if self._events_changed:
            self.samples.set_events(self.events.attrs, self.events.names(self.header))
            self.records.set_events(self.events.attrs)
        elif self._names_changed:
            self.samples.set_names(self.events.names(self.header))
        self._events_changed = self._names_changed = False

    def _read_features(self, data: Buffer) -> None:
        for number, (offset, size) in self.head.features.items():
            self._take_feature(number, data[offset : offset + size].tobytes())
        offset, size = self.head.event_types
        if 0 < size <= len(data) and offset <= len(data) - size:
            self.events.add_types(data[offset : offset + size].tobytes())

    def _take_feature(self, number: int, content: bytes) -> None:
        if number == EVENT_DESC:
            if content != self._described:
                self._described, self._events_changed = content, True
                self.events.describe(read_event_desc(content, self._order, self.warnings))
        elif number == BUILD_ID:
            self.build_ids.update(read_build_ids(content, self._order))
        else:
            self._names_changed |= number == PMU_MAPPINGS
            read_feature(number, content, self._order, self.header, self.warnings)

    def _walk(self, buffer: Buffer, at: int, end: int) -> Generator[None, None, str]:
        """Read the file's records from `at` on; returns what is wrong where it had to stop, or ""."""
        outcome = native.FULL
        while outcome in (native.FULL, native.STOPPED):
            outcome, at = self._piece(buffer, at, end, outer=True)
            self._passed(at)
            if outcome == native.STOPPED:
                following = self._special(buffer, at, outer=True)
                if following > end:
                    return f"{self.name}: data of the record at offset {at} reach beyond the end"
                at = following
            yield
        self._drain()
        return self._problem(outcome, at, "")

    def _drain(self) -> None:
        """Read what was decompressed before whatever comes next."""
        if self._inflater is not None:
            self._inflater.drain()

    def _walk_inflated(self, buffer: Buffer) -> int:
        """Read decompressed records; returns how many bytes they took, all but an event that goes on."""
        at, outcome = 0, native.FULL
        while outcome in (native.FULL, native.STOPPED):
            outcome, at = self._piece(buffer, at, len(buffer))
            if outcome == native.STOPPED:
                at = self._special(buffer, at, outer=False)
        if at > len(buffer):
            raise PerfDataError(f"{self.name}: data of a decompressed record reach beyond the end", _HINT)
        if outcome != native.PAST_END and (
            problem := self._problem(outcome, at, " of the decompressed data")
        ):
            raise PerfDataError(problem, _HINT)
        return at

    def _piece(self, buffer: Buffer, at: int, end: int, outer: bool = False) -> tuple[int, int]:
        """Read up to `_BLOCK` records, or to one that must be taken alone; (outcome, where it ended)."""
        outcome, at, samples, others = self._walker.walk(buffer, at, end)
        if len(samples.positions) or len(others):
            if outer and self._inflater is not None:
                # The walker's arrays are used again for what was decompressed before.
                samples, others = samples.copy(), others.copy()
                self._drain()
            self._settle_events()
        self.samples.decode(buffer, samples)
        for position in others.tolist():
            self.records.read(self._record(buffer, position))
        return outcome, at

    def _problem(self, outcome: int, at: int, where: str) -> str:
        if outcome == native.AT_END:
            return ""
        problem = "has an impossible size" if outcome == native.TOO_SMALL else "reaches beyond the end"
        return f"{self.name}: record at offset {at}{where} {problem}"

    def _record(self, buffer: Buffer, at: int) -> bytes:
        return buffer[at : at + self._size(buffer, at)].tobytes()

    def _size(self, buffer: Buffer, at: int) -> int:
        return int(struct.unpack_from(self._order + "H", buffer.data, at + 6)[0])

    def _special(self, buffer: Buffer, at: int, outer: bool) -> int:
        """Take a record that changes how the following ones are read; returns where the next one is."""
        record = self._record(buffer, at)
        (kind,) = struct.unpack_from(self._order + "I", record)
        self._walker.counts[kind] += 1
        following = at + len(record)
        if kind in (COMPRESSED, COMPRESSED2):
            if outer:
                self._inflate(record, kind, at)
            return following
        if outer:
            self._drain()
        if kind == AUXTRACE and len(record) >= 16:
            following += int(struct.unpack_from(self._order + "Q", record, 8)[0])
        elif kind == TRACING_DATA and len(record) >= 12:
            following += (int(struct.unpack_from(self._order + "I", record, 8)[0]) + 7) & ~7
        else:
            self._take_fact(kind, record, at)
        return following

    def _take_fact(self, kind: int, record: bytes, at: int) -> None:
        if kind == ATTR:
            if not self.events.add_record(record):
                self.warnings.append(
                    f"the event at offset {at} does not fit in its record, or is one too many: left out"
                )
            self._events_changed, self._described = True, b""  # a description may be of this one
        elif kind == EVENT_UPDATE:
            self._names_changed |= self.events.update(record)
        elif kind == EVENT_TYPE:
            self.events.add_types(record[8:])
            self._names_changed = True
        elif kind == FEATURE and len(record) >= 16:
            self._take_feature(int(struct.unpack_from(self._order + "Q", record, 8)[0]), record[16:])
        elif kind == HEADER_BUILD_ID:
            self.build_ids.update(read_build_ids(record, self._order))
        elif kind == AUXTRACE_INFO:
            self.header["auxtrace"] = True
        elif kind == THREAD_MAP:
            self.header.setdefault("thread_map", {}).update(read_thread_map(record, self._order))
        elif kind == TIME_CONV and len(record) >= 32:
            shift, multiplier, zero = struct.unpack_from(self._order + "3Q", record, 8)
            self.header["time_conv"] = {"shift": shift, "mult": multiplier, "zero": zero}

    def _inflate(self, record: bytes, kind: int, at: int) -> None:
        payload = np.frombuffer(record, dtype=np.uint8)[8:]
        if kind == COMPRESSED2:
            if len(record) < 16:
                raise PerfDataError(f"{self.name}: compressed record at offset {at} without data", _HINT)
            (size,) = struct.unpack_from(self._order + "Q", record, 8)
            payload = payload[8 : 8 + min(size, len(record))]
        if self._inflater is None:
            self._inflater = Inflater(self.name, self._walk_inflated)
        self._inflater.feed(payload, at)


def _treatment() -> list[int]:
    treatment = [native.SKIP] * native.COUNTED_TYPES
    for kind in records.REPORTED:
        treatment[kind] = native.REPORT
    for kind in _STOPS:
        treatment[kind] = native.STOP
    return treatment
