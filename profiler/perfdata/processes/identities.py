"""Processes, threads and regions of recordings, as far as their records tell."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ...identity.records import Identity, ProcessRecord
from .address_spaces import AddressSpaces
from .ancestry import ProcessSpan, processes_of, span_at
from .records import EXECUTABLE, Mapping, ThreadSpan


@dataclass(frozen=True)
class RunRecords:
    """What the records of one run say; of several files one after the other. execs: (time, pid)."""

    spans: Sequence[ThreadSpan]
    maps: Sequence[Mapping]
    execs: Sequence[tuple[int, int]]
    same_host: bool = False


@dataclass
class _Process:
    """A process with its own mappings and the times of its execs."""

    span: ProcessSpan
    maps: list[Mapping] = field(default_factory=list)
    execs: list[int] = field(default_factory=list)

    def record(self) -> ProcessRecord:
        """Its program is the first code that was mapped since the last exec."""
        last = max(self.execs, default=-1)
        code = [
            one
            for one in self.maps
            if one.protection & EXECUTABLE and one.filename.startswith("/") and one.time >= last
        ]
        program = min(code, key=lambda one: one.time, default=None)
        span = self.span
        parent = span.parent.label if span.parent is not None else ""
        executable, build_id = (program.filename, program.build_id) if program else (span.name, "")
        return ProcessRecord(span.label, span.pid, parent, (), executable, build_id, span.start, span.end)


def identity_of(run: RunRecords, wanted: Collection[int]) -> tuple[Identity, tuple[str, ...]]:
    """The processes with an id in `wanted` and their ancestors; and warnings.

    same_host: the recording was made here, so files without a build id may be looked into.
    """
    processes = _with_memory(run, processes_of(run.spans, wanted))
    threads = tuple(record for one in processes for record in one.span.threads())
    spaces = AddressSpaces(run.same_host)
    for one in processes:
        spaces.add(one.span, one.maps, one.execs)
    warnings = ("too many mappings: some regions are left out",) if spaces.full else ()
    records = tuple(one.record() for one in processes)
    return Identity(
        processes=records, threads=threads, regions=tuple(spaces.regions), modules=tuple(spaces.modules)
    ), warnings


def _with_memory(run: RunRecords, spans: Sequence[ProcessSpan]) -> list[_Process]:
    """Give each process its mappings and execs, each once: several files repeat what was there."""
    processes = {id(span): _Process(span) for span in spans}
    by_pid: dict[int, list[ProcessSpan]] = {}
    for span in sorted(spans, key=lambda span: span.start):
        by_pid.setdefault(span.pid, []).append(span)
    for one in dict.fromkeys(run.maps):
        if one.pid in by_pid:
            processes[id(span_at(by_pid[one.pid], one.time))].maps.append(one)
    for time, pid in dict.fromkeys(run.execs):
        if pid in by_pid:
            processes[id(span_at(by_pid[pid], time))].execs.append(time)
    return list(processes.values())
