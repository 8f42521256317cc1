"""Make a trace of perf.data files that were recorded elsewhere (`nprof import`)."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from numaplan.common import NumaplanError, UsageError
from numaplan.profiler.assemble import write_trace
from numaplan.profiler.backends.base import Progress, Recording
from numaplan.profiler.hardware_trace import synthesise
from numaplan.profiler.identity import Identity
from numaplan.profiler.machine import Machine
from numaplan.profiler.perfdata import Decoded, decode_perf
from numaplan.profiler.perfdata.conversion import Converted, convert, machine_of
from numaplan.profiler.perfdata.unpack import unpacked


@dataclass(frozen=True)
class ImportSummary:
    """What the files brought; warnings: what in them could not be read."""

    samples: int
    threads: int
    losses: int
    warnings: tuple[str, ...]


def import_recordings(
    names: Sequence[str],
    output: Path,
    *,
    machine: Machine | None = None,
    progress: Progress = lambda *_: None,
) -> ImportSummary:
    """Write the memory accesses of recordings of one run (on one clock) as one trace.

    names: files, directories of `perf record --threads`, gzip or xz packed files, `-` for stdin. machine: the
    one of the first file by default. Raises UsageError (PerfDataError) for what cannot be read or holds no
    memory access, MachineLacksError for hardware traces that only perf can decode.
    """
    with tempfile.TemporaryDirectory(prefix="numaplan-import-") as folder:
        parts = []
        for number, name in enumerate(names):
            progress(f"reading {name}", number / len(names))
            parts.append(_read(name, Path(folder), number))
        chosen = machine or machine_of(parts[0].decoded)
        recording, identity = _merged(parts, chosen)
        first = parts[0].decoded.header
        meta = {
            "argv": json.dumps(first.get("cmdline", [])),
            "backend": "import",
            "backend_why": ", ".join(names),
            "hostname": first.get("hostname", ""),
            "perf": first.get("version", ""),
        }
        samples, threads = write_trace(output, chosen, recording, identity, meta, progress)
    warnings = tuple(warning for part in parts for warning in part.decoded.warnings)
    return ImportSummary(samples, threads, sum(events for _, events in recording.losses), warnings)


def _read(name: str, folder: Path, number: int) -> Converted:
    """The accesses of one recording; those of a hardware trace have to be made by perf."""
    path = unpacked(name, folder, number)
    decoded = decode_perf(path)
    converted = convert(decoded)
    if decoded.header.get("auxtrace"):
        try:
            converted = convert(decode_perf(synthesise(path, folder / f"synthesised-{number}.data")))
        except NumaplanError as error:
            if not len(converted.rows):
                raise
            warned = replace(decoded, warnings=(*decoded.warnings, f"{name}: {error.what}"))
            return replace(converted, decoded=warned)
    if not len(converted.rows):
        raise _nothing(name, decoded)
    return converted


def _nothing(name: str, decoded: Decoded) -> UsageError:
    events = ", ".join(dict.fromkeys(decoded.events)) or "none"
    return UsageError(
        f"{name}: no memory access among {len(decoded.samples['time'])} samples (events: {events})",
        "record with 'perf mem record' or 'perf record -d -e page-faults'",
    )


def _merged(parts: Sequence[Converted], machine: Machine) -> tuple[Recording, Identity]:
    losses = [loss for part in parts for loss in _losses(part.decoded, part.start)]
    identities = [part.identity() for part in parts]
    recording = Recording(
        exit_code=0,
        start_ns=min(part.start for part in parts),
        blocks=chain.from_iterable(part.blocks(machine) for part in parts),
        threads=list(dict.fromkeys(thread for part in parts for thread in part.threads())),
        losses=losses,
    )
    return recording, Identity(
        processes=tuple(process for one in identities for process in one.processes),
        regions=tuple(region for one in identities for region in one.regions),
    )


def _losses(decoded: Decoded, start: int) -> list[tuple[int, int]]:
    known = [(max(time, start), events) for time, events in decoded.losses]
    missing = decoded.lost - sum(events for _time, events in known)
    return [*known, (start, missing)] if missing > 0 else known
