"""Records other than samples: which threads ran when, what was mapped where, what was lost."""

import struct
from dataclasses import dataclass

from ..file import attrs as a
from ..file.attrs import Attr

MMAP, LOST, COMM, EXIT, THROTTLE, FORK, SAMPLE, MMAP2, LOST_SAMPLES = 1, 2, 3, 4, 5, 7, 9, 10, 13
REPORTED = (MMAP, LOST, COMM, EXIT, FORK, MMAP2, LOST_SAMPLES)
READABLE, WRITABLE, EXECUTABLE = 1, 2, 4  # a mapping's protection
# Fields at the end of records that are no samples, where sample_id_all is set.
_TAIL = (a.TID, a.TIME, a.ID, a.STREAM_ID, a.CPU, a.IDENTIFIER)
_MOST_LOST = 1 << 40  # at once: what a thousand cpus write in minutes
_MISC_BUILD_ID = 1 << 14
_MISC_MMAP_DATA = 1 << 13
_MISC_EXEC = 1 << 13


@dataclass
class ThreadSpan:
    """A thread from its start to its end by the file's clock; -1: it was there before, or stayed.

    name: the last one it had; parents are -1 when unknown.
    """

    pid: int
    tid: int
    name: str = ""
    parent_pid: int = -1
    parent_tid: int = -1
    start: int = -1
    end: int = -1


@dataclass(frozen=True)
class Mapping:
    """A file or anonymous memory mapped into a process from `time` on; pid -1 is the kernel.

    protection: bits READABLE, WRITABLE, EXECUTABLE; records of the first kind tell only code from data.
    """

    time: int
    pid: int
    tid: int
    addr: int
    length: int
    offset: int
    filename: str
    protection: int = READABLE | EXECUTABLE
    build_id: str = ""


class RecordReader:
    """Reads records in file order and keeps what they said.

    losses: (time, events lost) of LOST records; lost_samples: the sum of LOST_SAMPLES; execs: (time, pid) of
    each exec; damaged: records too short for their kind; impossible: those of more losses than can be.
    """

    def __init__(self, order: str) -> None:
        self.maps: list[Mapping] = []
        self.losses: list[tuple[int, int]] = []
        self.lost_samples = 0
        self.execs: list[tuple[int, int]] = []
        self.damaged = 0
        self.impossible = 0
        self._order = order
        self._spans: list[ThreadSpan] = []
        self._living: dict[int, ThreadSpan] = {}
        self._tails: list[dict[int, int]] = []
        self._id_at: int | None = None
        self._event_of: dict[int, int] = {}

    def set_events(self, attrs: list[Attr]) -> None:
        """The events as known so far."""
        self._tails = [_tail_of(attr) for attr in attrs]
        ends = {_id_distance(tail) for tail in self._tails}
        # With an id at one place in all tails each record tells its event; else the first event's tail holds.
        self._id_at = ends.pop() if len(attrs) > 1 and len(ends) == 1 else None
        self._event_of = {
            number: index for index, attr in reversed(list(enumerate(attrs))) for number in attr.ids
        }

    def threads(self) -> list[ThreadSpan]:
        """Every thread that a record names, as they began; a tid that came back is another thread."""
        return self._spans

    def read(self, data: bytes) -> None:
        """Take one whole record."""
        kind, misc = struct.unpack_from(self._order + "IH", data)
        try:
            self._read(kind, misc, data)
        except struct.error:
            self.damaged += 1

    def _read(self, kind: int, misc: int, data: bytes) -> None:
        order, time = self._order, self._time(data)
        if kind == COMM:
            pid, tid = struct.unpack_from(order + "2i", data, 8)
            self._named(pid, tid, _text(data, 16), time, bool(misc & _MISC_EXEC))
        elif kind in (FORK, EXIT):
            pid, parent, tid, parent_tid, when = struct.unpack_from(order + "4iQ", data, 8)
            if kind == FORK:
                self._began(ThreadSpan(pid, tid, "", parent, parent_tid, _signed(when)))
            elif tid in self._living:
                self._living.pop(tid).end = _signed(when)
        elif kind == LOST:
            if (count := self._lost(data, 16)) is not None:
                self.losses.append((time, count))
        elif kind == LOST_SAMPLES:
            self.lost_samples += self._lost(data, 8) or 0
        else:
            self._mapped(kind, misc, data, time)

    def _lost(self, data: bytes, at: int) -> int | None:
        """How many were lost, as a record says; None where that is impossible."""
        count = int(struct.unpack_from(self._order + "Q", data, at)[0])
        if count <= _MOST_LOST:
            return count
        self.impossible += 1
        return None

    def _began(self, span: ThreadSpan) -> None:
        # A tid can come back, also in another process: another thread begins.
        parent = self._living.get(span.parent_tid)
        span.name = parent.name if parent else ""
        self._living[span.tid] = span
        self._spans.append(span)

    def _named(self, pid: int, tid: int, name: str, time: int, by_exec: bool) -> None:
        span = self._living.get(tid)
        if span is None or span.pid != pid:
            span = ThreadSpan(pid, tid, start=time if by_exec and time > 0 else -1)
            self._living[tid] = span
            self._spans.append(span)
        span.name = name
        if by_exec:
            self.execs.append((time, pid))

    def _mapped(self, kind: int, misc: int, data: bytes, time: int) -> None:
        pid, tid, addr, length, offset = struct.unpack_from(self._order + "2i3Q", data, 8)
        build_id, name_at = "", 40
        protection = READABLE | (WRITABLE if misc & _MISC_MMAP_DATA else EXECUTABLE)
        if kind == MMAP2:
            if misc & _MISC_BUILD_ID:
                size = min(data[40], 20) if len(data) > 64 else 0
                build_id = data[44 : 44 + size].hex()
            (protection,) = struct.unpack_from(self._order + "I", data, 64)
            name_at = 72
        name = _text(data, name_at)
        self.maps.append(Mapping(time, pid, tid, addr, length, offset, name, protection, build_id))

    def _time(self, data: bytes) -> int:
        """The time in the record's tail, -1 when it has none."""
        event = 0 if self._id_at is None else self._event_of.get(self._from_end(data, self._id_at), 0)
        distance = self._tails[event].get(a.TIME) if self._tails else None
        return -1 if distance is None else _signed(self._from_end(data, distance))

    def _from_end(self, data: bytes, distance: int) -> int:
        """A word of the tail, all ones (no time, no id) when the record is too short for it."""
        if distance > len(data) - 8:
            return (1 << 64) - 1
        return int(struct.unpack_from(self._order + "Q", data, len(data) - distance)[0])


def _tail_of(attr: a.Attr) -> dict[int, int]:
    """Distance of each field of the tail from the end of a record that is no sample; empty without a tail."""
    if "sample_id_all" not in attr.flags:
        return {}
    present = [bit for bit in _TAIL if attr.sample_type & bit]
    return {bit: 8 * (len(present) - index) for index, bit in enumerate(present)}


def _id_distance(tail: dict[int, int]) -> int | None:
    return tail.get(a.IDENTIFIER, tail.get(a.ID))


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _text(data: bytes, at: int) -> str:
    """A string up to its NUL, or to the end of a record that forgot it."""
    return data[at:].split(b"\0", 1)[0].decode("utf-8", "replace")
