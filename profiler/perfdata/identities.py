"""Processes, threads and regions of recordings, as far as their records tell."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..identity.records import Identity, ProcessRecord
from .family import Life, family, life_at
from .records import EXECUTABLE, Mapping, ThreadSpan
from .spaces import Spaces


@dataclass(frozen=True)
class Facts:
    """What the records of one run say; of several files one after the other. execs: (time, pid)."""

    spans: Sequence[ThreadSpan]
    maps: Sequence[Mapping]
    execs: Sequence[tuple[int, int]]
    same_host: bool = False


def identity_of(facts: Facts, wanted: Collection[int]) -> tuple[Identity, tuple[str, ...]]:
    """The processes with an id in `wanted` and their ancestors; and warnings.

    same_host: the recording was made here, so files without a build id may be looked into.
    """
    lives = family(facts.spans, wanted)
    threads = [record for life in lives for record in life.threads()]
    maps, execs = _by_life(facts, lives)
    spaces = Spaces(facts.same_host)
    for life in lives:
        spaces.add(life, maps.get(id(life), []), execs.get(id(life), []))
    processes = tuple(_process(life, maps.get(id(life), []), execs.get(id(life), [])) for life in lives)
    warnings = ("too many mappings: some regions are left out",) if spaces.full else ()
    return Identity(processes=processes, threads=tuple(threads), regions=tuple(spaces.regions)), warnings


def _by_life(facts: Facts, lives: Iterable[Life]) -> tuple[dict[int, list[Mapping]], dict[int, list[int]]]:
    """Mappings and times of execs of each process, each once: several files repeat what was there."""
    by_pid: dict[int, list[Life]] = {}
    for life in lives:
        by_pid.setdefault(life.pid, []).append(life)
    for same in by_pid.values():
        same.sort(key=lambda life: life.start)
    maps: dict[int, list[Mapping]] = {}
    execs: dict[int, list[int]] = {}
    for one in dict.fromkeys(facts.maps):
        if one.pid in by_pid:
            maps.setdefault(id(life_at(by_pid[one.pid], one.time)), []).append(one)
    for time, pid in dict.fromkeys(facts.execs):
        if pid in by_pid:
            execs.setdefault(id(life_at(by_pid[pid], time)), []).append(time)
    return maps, execs


def _process(life: Life, maps: Sequence[Mapping], execs: Sequence[int]) -> ProcessRecord:
    """A process; its program is the first code that was mapped since the last exec."""
    last = max(execs, default=-1)
    code = [
        one
        for one in maps
        if one.protection & EXECUTABLE and one.filename.startswith("/") and one.time >= last
    ]
    program = min(code, key=lambda one: one.time, default=None)
    parent = life.parent.process if life.parent is not None else ""
    executable, build_id = (program.filename, program.build_id) if program else (life.name, "")
    return ProcessRecord(life.process, life.pid, parent, (), executable, build_id, life.start, life.end)
