"""A trace as Perfetto shows it: threads and where they ran as tracks, what they access as counters."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from ..trace.reader import Trace
from . import protobuf as wire
from .profile import BEYOND, REMOTE

# Fields of Trace, TracePacket, TrackDescriptor and TrackEvent.
PACKET, TIME, SEQUENCE, EVENT, DESCRIPTOR = 1, 8, 10, 11, 60
UUID, NAME, PROCESS, THREAD, PARENT, COUNTER = 1, 2, 3, 4, 5, 8
TYPE, TRACK, EVENT_NAME, WHOLE_VALUE, VALUE = 9, 11, 23, 30, 44
BEGIN, END, COUNT = 1, 2, 4
SLICES = 1000  # of time

Span = tuple[int, int, str]  # from, to, in ns, and what it is called


class _Writer:
    """Packets, in order."""

    def __init__(self) -> None:
        self._uuid = count(1)
        self.content = bytearray()

    def track(self, name: str, parent: int = 0, *, kind: bytes = b"") -> int:
        uuid = next(self._uuid)
        content = wire.number(UUID, uuid) + (wire.text(NAME, name) if name else b"")
        content += wire.number(PARENT, parent) if parent else b""
        self._packet(wire.message(DESCRIPTOR, content + kind))
        return uuid

    def counter(self, name: str, parent: int) -> int:
        return self.track(name, parent, kind=wire.message(COUNTER, b""))

    def span(self, track: int, start: int, end: int, name: str) -> None:
        self._event(start, track, BEGIN, wire.text(EVENT_NAME, name))
        self._event(end, track, END, b"")

    def value(self, track: int, time: int, value: float) -> None:
        written = wire.number(WHOLE_VALUE, value) if isinstance(value, int) else wire.double(VALUE, value)
        self._event(time, track, COUNT, written)

    def _event(self, time: int, track: int, kind: int, more: bytes) -> None:
        event = wire.number(TYPE, kind) + wire.number(TRACK, track) + more
        self._packet(wire.number(TIME, max(0, time)) + wire.message(EVENT, event))

    def _packet(self, content: bytes) -> None:
        self.content += wire.message(PACKET, content + wire.number(SEQUENCE, 1))


def perfetto(trace: Trace, spans: Mapping[str, Sequence[Span]] | None = None) -> bytes:
    """The trace; spans: further tracks by name. Where the clock counts accesses, a ns is one."""
    writer = _Writer()
    rows = trace.thread_rows
    pids = {process: number for number, process in enumerate(dict.fromkeys(row.process for row in rows), 1)}
    processes = {}
    for process, number in pids.items():
        pid = next((row.pid for row in rows if row.process == process and row.pid > 0), number)
        kind = wire.message(PROCESS, wire.number(1, pid) + wire.text(6, f"{_program(trace)} {process}"))
        processes[process] = writer.track("", kind=kind), pid
    whole = writer.track("program")
    for name, listed in (spans or {}).items():
        track = writer.track(name, whole)
        for start, end, what in listed:
            writer.span(track, start, end, what)
    tracks: dict[int, int] = {}
    for row in rows:
        parent, pid = processes[row.process]
        about = wire.number(1, pid) + wire.number(2, row.tid if row.tid > 0 else (pid << 16) + row.thread)
        kind = wire.message(THREAD, about + wire.text(5, f"{row.path} {row.name or ''}".strip()))
        tracks[row.thread] = writer.track("", parent, kind=kind)
        end = row.end_ns if row.end_ns >= 0 else trace.duration_ns
        writer.span(tracks[row.thread], row.start_ns, max(row.start_ns, end), f"thread {row.path}")
    for thread, listed in _placements(trace):
        if thread in tracks:
            track = writer.track("ran on", tracks[thread])
            for start, end, what in listed:
                writer.span(track, start, end, what)
    _counters(writer, trace, {-1: whole, **tracks})
    return bytes(writer.content)


def _program(trace: Trace) -> str:
    return trace.argv[0].rpartition("/")[2] if trace.argv else trace.path.name


def _placements(trace: Trace) -> Iterator[tuple[int, list[Span]]]:
    """Of each thread the cpus that its samples were taken on, one after the other."""
    node = trace.machine.node_of_cpu
    ends = dict(trace.rows("SELECT thread, max(time_ns) FROM samples GROUP BY thread"))
    rows = trace.rows(
        """
        WITH looked AS (
            SELECT thread, time_ns, cpu, lag(cpu, 1, -1) OVER (PARTITION BY thread ORDER BY time_ns) AS last
            FROM samples WHERE thread >= 0 AND cpu >= 0)
        SELECT thread, time_ns, cpu FROM looked WHERE cpu <> last ORDER BY thread, time_ns
        """
    )
    by_thread: dict[int, list[tuple[int, int]]] = {}
    for thread, time, cpu in rows:
        by_thread.setdefault(thread, []).append((time, cpu))
    for thread, stays in by_thread.items():
        until = [start for start, _ in stays[1:]] + [ends[thread]]
        yield (
            thread,
            [
                (start, end, f"cpu {cpu}, node {node[cpu]}" if cpu in node else f"cpu {cpu}")
                for (start, cpu), end in zip(stays, until, strict=True)
            ],
        )


def _counters(writer: _Writer, trace: Trace, tracks: Mapping[int, int]) -> None:
    """Accesses (samples) and remote shares of slices of time, of all and of each thread; 0 where none are."""
    width = max(1, -(-trace.duration_ns // SLICES))
    rows = trace.rows(
        f"""
        WITH each AS (
            SELECT thread, time_ns // {width} AS slice, count(*) AS n,
                   count(*) FILTER (WHERE {REMOTE}) AS away, count(*) FILTER (WHERE {BEYOND}) AS beyond
            FROM samples GROUP BY ALL)
        SELECT -1, slice, sum(n)::BIGINT, sum(away)::BIGINT, sum(beyond)::BIGINT FROM each GROUP BY slice
        UNION ALL SELECT * FROM each WHERE thread >= 0 ORDER BY 1, 2
        """
    )
    counters: dict[int, tuple[int, int]] = {}
    last: dict[int, int] = {}
    for thread, slice_, accesses, away, beyond in rows:
        if thread not in tracks:
            continue
        if thread not in counters:
            names = ("accesses", "remote share")
            one, other = (writer.counter(name, tracks[thread]) for name in names)
            counters[thread] = one, other
        if last.get(thread, slice_ - 1) < slice_ - 1:
            _zero(writer, counters[thread], (last[thread] + 1) * width)
        for track, value in zip(counters[thread], (accesses, away / beyond if beyond else 0.0), strict=True):
            writer.value(track, slice_ * width, value)
        last[thread] = slice_
    for thread, slice_ in last.items():
        _zero(writer, counters[thread], (slice_ + 1) * width)


def _zero(writer: _Writer, tracks: tuple[int, int], time: int) -> None:
    writer.value(tracks[0], time, 0)
    writer.value(tracks[1], time, 0.0)
