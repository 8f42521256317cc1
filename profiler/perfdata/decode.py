"""Decode perf.data files: the one entry, `decode_perf`, and what it returns."""

import os
from collections.abc import Callable, Iterator, Mapping as MappingView
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .file.source import PerfDataError, Source
from .processes.records import Mapping, ThreadSpan
from .processes.unrecorded import UnrecordedThreads
from .reader import Reader
from .samples.decoder import SampleDecoder

_HINT = "give a file that perf record wrote"
_MOST_APART = 1 << 62  # ns; no two clocks are farther apart


@dataclass(frozen=True)
class Decoded:
    """A recording. Times are in ns of the file's own clock (`header["clockid"]` names it when it is known).

    samples: equally long arrays `time pid tid cpu` (int64), `ip addr phys_addr period weight data_src`
    (uint64; 0 where the event has none), `event` (index into `events`) and `cpumode` (1 kernel, 2 user, 4 and
    5 a guest's), every sample in file order; maps: mappings in file order; losses: (time, events lost there);
    lost: how many events were lost in all; execs: (time, pid) of each exec; header: what perf wrote about the
    machine, the command and the events, by name; warnings: what could not be read.
    """

    samples: MappingView[str, NDArray[Any]]
    events: tuple[str, ...]
    maps: tuple[Mapping, ...]
    losses: tuple[tuple[int, int], ...]
    execs: tuple[tuple[int, int], ...]
    lost: int
    header: MappingView[str, Any]
    warnings: tuple[str, ...]
    recorded_threads: tuple[ThreadSpan, ...] = field(repr=False)

    @cached_property
    def threads(self) -> tuple[ThreadSpan, ...]:
        """Every thread, also those that only samples name; a tid that came back is another thread.

        One that no record names is called as in perf's list of the threads to record, if it is there.
        """
        unrecorded = UnrecordedThreads(self.recorded_threads)
        unrecorded.search(self.samples)
        names = self.header.get("thread_map", {})
        return tuple(
            one if one.name or one.tid not in names else replace(one, name=names[one.tid])
            for one in (*self.recorded_threads, *unrecorded.spans())
        )

    def losses_from(self, start: int) -> list[tuple[int, int]]:
        """Where events were lost, none before `start`; what only the totals know of is put there."""
        known = [(max(time, start), events) for time, events in self.losses]
        missing = self.lost - sum(events for _time, events in known)
        return [*known, (start, missing)] if missing > 0 else known

    def moved(self, shift: int) -> "Decoded":
        """All but the samples on a clock that is `shift` ns ahead; times that say nothing stay."""
        if not shift:
            return self

        def later(time: int) -> int:
            return time + shift if time > 0 else time

        return replace(
            self,
            recorded_threads=tuple(
                replace(one, start=later(one.start), end=later(one.end)) for one in self.threads
            ),
            maps=tuple(replace(one, time=later(one.time)) for one in self.maps),
            execs=tuple((later(time), pid) for time, pid in self.execs),
            losses=tuple((later(time), events) for time, events in self.losses),
        )

    def within(self, possible: Callable[[int], bool]) -> tuple["Decoded", int]:
        """All but the samples without records of impossible times, and how many such times there were.

        Threads and losses stay, at times that are not known.
        """
        spans = self.recorded_threads
        times = [time for one in spans for time in (one.start, one.end)]
        times += [one.time for one in self.maps]
        times += [time for time, _ in (*self.execs, *self.losses)]
        impossible = sum(not possible(time) for time in times)
        if not impossible:
            return self, 0

        def known(time: int) -> int:
            return time if possible(time) else -1

        found = replace(
            self,
            recorded_threads=tuple(replace(one, start=known(one.start), end=known(one.end)) for one in spans),
            maps=tuple(one for one in self.maps if possible(one.time)),
            execs=tuple(one for one in self.execs if possible(one[0])),
            losses=tuple((known(time), events) for time, events in self.losses),
        )
        return found, impossible

    @property
    def wall_clock_ahead(self) -> int | None:
        """How many ns the wall clock is ahead of the file's; None where perf did not note both (`-k`)."""
        noted = self.header.get("clock_data")
        if not noted or noted["clockid"] != self.header.get("clockid", noted["clockid"]):
            return None
        ahead = int(noted["wall_clock_ns"]) - int(noted["clockid_ns"])
        return ahead if abs(ahead) < _MOST_APART else None


def decode_perf(path: str | os.PathLike[str]) -> Decoded:
    """Decode a perf.data file, or the directory that `perf record --threads` writes.

    Damage that leaves something to read becomes a warning. Raises PerfDataError, naming the offset, when
    nothing can be read, and UsageError when the file cannot be opened.
    """
    place = Path(path)
    source, reader = opened(place)
    reader.expect()
    for _piece in pieces(reader, source, place):
        pass
    reader.finish()
    return decoded_of(reader)


def opened(
    place: Path, decoder: type[SampleDecoder] = SampleDecoder, name: str = ""
) -> tuple[Source, Reader]:
    """A recording (file or directory) and a reader for it. name: of a file in messages, if not its path."""
    source = Source(place / "data") if place.is_dir() else Source(place, name)
    return source, Reader(source, decoder)


def pieces(reader: Reader, source: Source, place: Path) -> Iterator[None]:
    """Read the file, and the further ones of a directory."""
    yield from reader.read(source, reader.head.data_start, reader.head.data_end)
    if place.is_dir():
        for part in sorted(place.glob("data.*"), key=_number):
            more = Source(part)
            yield from reader.read(more, 0, len(more.data))


def _number(part: Path) -> tuple[int, str]:
    digits = part.suffix[1:]
    return (int(digits) if digits.isdecimal() else 0, part.name)


def decoded_of(reader: Reader) -> Decoded:
    """What was read."""
    header = dict(reader.header)
    events = tuple(reader.events.names(header))
    header.update(
        pipe=reader.head.pipe,
        byte_order="little" if reader.head.order == "<" else "big",
        unfinished=reader.head.unfinished,
        records=reader.counts,
        attrs=[
            {
                "name": name,
                "type": attr.type,
                "config": attr.config,
                "sample_type": attr.sample_type,
                "period": 0 if "freq" in attr.flags else attr.sample_period,
            }
            for name, attr in zip(events, reader.events.attrs, strict=True)
        ],
    )
    clocks = {attr.clockid for attr in reader.events.attrs if "use_clockid" in attr.flags}
    if len(clocks) == 1:
        header["clockid"] = clocks.pop()
    if not events:
        raise PerfDataError(f"{reader.name}: no events in it (offset {reader.head.data_start})", _HINT)
    return Decoded(
        samples=reader.samples.columns.finish(),
        events=events,
        maps=tuple(_with_build_id(one, reader.build_ids) for one in reader.records.maps),
        losses=tuple(reader.records.losses),
        execs=tuple(reader.records.execs),
        lost=_lost(reader),
        header=header,
        warnings=tuple(reader.warnings),
        recorded_threads=tuple(reader.records.threads()),
    )


def _with_build_id(mapping: Mapping, known: dict[str, str]) -> Mapping:
    found = known.get(mapping.filename)
    return replace(mapping, build_id=found) if found and not mapping.build_id else mapping


def _lost(reader: Reader) -> int:
    """LOST and LOST_SAMPLES say the same since perf 6.0; before, the latter are what the sampler dropped."""
    in_ring = sum(events for _time, events in reader.records.losses)
    dropped = reader.records.lost_samples
    version = str(reader.header.get("version", "")).split(".", 1)[0]
    return max(in_ring, dropped) if version.isdecimal() and int(version) >= 6 else in_ring + dropped
