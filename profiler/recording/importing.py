"""Make a trace from perf.data files that were recorded elsewhere (`nprof import`)."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from pathlib import Path

from numaplan.common import (
    NumaplanError,
    UsageError,
    as_text,
    check_named_once,
    check_output,
    temporary_folder,
)
from numaplan.machine import Machine

from ..backends.base import Progress, Recording
from ..backends.perf.hardware_trace import samples_of
from ..perfdata.accesses.blocks import KEPT, Accesses, survey
from ..perfdata.accesses.event_kinds import period_facts
from ..perfdata.accesses.placing import machine_of
from ..perfdata.decode import Decoded
from ..perfdata.file.source import decompressed, shown
from ..perfdata.processes.identities import RunRecords, identity_of
from ..perfdata.processes.records import SAMPLE
from .assemble import write_trace


@dataclass(frozen=True)
class ImportSummary:
    """What the files brought."""

    samples: int
    threads: int
    losses: int


def import_recordings(
    names: Sequence[str],
    output: Path,
    *,
    machine: Machine | None = None,
    progress: Progress = lambda *_: None,
) -> ImportSummary:
    """Write the memory accesses of recordings of one run as one trace.

    names: files, directories of `perf record --threads`, gzip or xz packed files, `-` for stdin. machine: the
    one of the first file by default. Raises UsageError (PerfDataError) for what cannot be read or holds no
    memory access, MachineLacksError for hardware traces that only perf can decode.
    """
    check_output(output, database=True)
    check_named_once([shown(name) for name in names])  # else each of its samples would count twice
    with temporary_folder("numaplan-import-") as folder:
        parts = []
        for number, name in enumerate(names):
            progress(f"reading {name}", number / len(names))
            parts.append(_read(name, folder, number, progress, KEPT // len(names)))
        chosen, doubt = (
            (machine, _too_small(machine, parts)) if machine else _described(shown(names[0]), parts)
        )
        shifts, unclear = _clock_shifts([part.facts for part in parts])
        parts = [part.moved(shift) for part, shift in zip(parts, shifts, strict=True)]
        start = min(part.start for part in parts)
        parts = _numbered(parts)
        pids = frozenset().union(*(part.pids for part in parts))
        identity, more = identity_of(_records_of_all([part.facts for part in parts]), pids)
        recording = Recording(
            exit_code=0,
            start_ns=start,
            blocks=chain.from_iterable(part.blocks(chosen, start) for part in parts),
            losses=[loss for part in parts for loss in part.facts.losses_from(start)],
            calls=chain.from_iterable(part.calls.blocks(part.first_call) for part in parts),
        )
        warnings = (*(text for part in parts for text in part.facts.warnings), doubt, *unclear, *more)
        meta = _meta(parts, names, start - shifts[0], list(filter(None, warnings)))
        samples, threads = write_trace(output, chosen, recording, identity, meta, progress)
    return ImportSummary(samples, threads, sum(events for _, events in recording.losses))


def _described(name: str, parts: Sequence[Accesses]) -> tuple[Machine, str]:
    """The machine as described in the first file, and a warning where that is damaged."""
    machine, problem = machine_of(parts[0].facts, max(part.last_cpu for part in parts))
    taken = f"taken as one node, --machine says what it is ({problem})"
    return machine, f"{name}: the machine's description is damaged: {taken}" if problem else ""


def _too_small(machine: Machine, parts: Sequence[Accesses]) -> str:
    """A warning where samples are of cpus that the machine which the user named does not have."""
    last = max(part.last_cpu for part in parts)
    if last in machine.node_of_cpu:
        return ""
    return f"--machine {machine.name} has no cpu {last}: of samples on cpus that it has not no node is known"


def _numbered(parts: Sequence[Accesses]) -> list[Accesses]:
    """With the calls of all numbered one after the other."""
    firsts = accumulate((len(part.calls) for part in parts), initial=0)
    return [replace(part, first_call=first) for part, first in zip(parts, firsts, strict=False)]


def _meta(
    parts: Sequence[Accesses], names: Sequence[str], start: int, warnings: Sequence[str]
) -> dict[str, object]:
    """Facts for the trace's meta table; start: of the recording, in the first file's clock."""
    first = parts[0].facts.header
    meta: dict[str, object] = {
        "argv": json.dumps(as_text(first.get("cmdline", []))),
        "backend": "import",
        "backend_why": ", ".join(names),
        "hostname": first.get("hostname", ""),
        "perf": first.get("version", ""),
        "perf_events": ", ".join(dict.fromkeys(event for part in parts for event in part.facts.events)),
        **period_facts({name: value for part in reversed(parts) for name, value in part.periods.items()}),
    }
    if (ahead := parts[0].facts.wall_clock_ahead) is not None:
        meta["wall_clock_ns"] = start + ahead
    if warnings:
        meta["warnings"] = "; ".join(warnings)
    return meta


def _read(name: str, folder: Path, number: int, progress: Progress, keep: int) -> Accesses:
    """The accesses of one recording; those of a hardware trace have to be made by perf."""
    path = decompressed(name, folder, number)
    name = shown(name)
    found = survey(path, keep, name)
    if found.facts.header.get("auxtrace"):
        try:
            return samples_of(path, found, folder, number, progress)
        except NumaplanError as error:
            if not found.count:
                raise
            warnings = (*found.facts.warnings, f"{name}: {error.what}")
            return replace(found, facts=replace(found.facts, warnings=warnings))
    if not found.count:
        raise _nothing(name, found)
    return found


def _nothing(name: str, found: Accesses) -> UsageError:
    events = ", ".join(dict.fromkeys(found.facts.events)) or "none"
    count = found.facts.header["records"].get(SAMPLE, 0)
    left_out = f"; {found.of_kernel} of them are of kernel memory or the idle task" if found.of_kernel else ""
    damage = f"; {found.facts.warnings[0].removeprefix(f'{name}: ')}" if found.facts.warnings else ""
    return UsageError(
        f"{name}: no memory access among {count} samples (events: {events}){left_out}{damage}",
        "record with 'perf mem record' or 'perf record -d -e page-faults'",
    )


def _clock_shifts(parts: Sequence[Decoded]) -> tuple[list[int], tuple[str, ...]]:
    """What to add to each recording's times to bring all on one clock, and warnings.

    Recordings of one machine on one clock are left alone; others are put on the wall clock.
    """
    clocks = {(part.header.get("clockid"), part.header.get("hostname")) for part in parts}
    if len(clocks) <= 1:
        return [0] * len(parts), ()
    known = [ahead for part in parts if (ahead := part.wall_clock_ahead) is not None]
    if len(known) < len(parts):
        return [0] * len(parts), (
            "the files' clocks differ and do not say how: times of one cannot be compared with another's",
        )
    return known, ()


def _records_of_all(parts: Sequence[Decoded]) -> RunRecords:
    """The facts of all files. Files of this machine: their programs can be looked into."""
    return RunRecords(
        spans=[span for part in parts for span in part.threads],
        maps=[one for part in parts for one in part.maps],
        execs=[one for part in parts for one in part.execs],
        same_host=all(part.header.get("hostname") == os.uname().nodename for part in parts),
    )
