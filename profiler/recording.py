"""Record one run: choose a backend, start the program under it, and make a trace of what it saw."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from numaplan.common import UsageError
from numaplan.common.process import find_program
from numaplan.profiler.assemble import write_trace
from numaplan.profiler.backends import Progress, RecordRequest, choose_backend
from numaplan.profiler.identity import prepare, read_identity
from numaplan.profiler.machine import Machine


@dataclass(frozen=True)
class RecordSummary:
    """What a recording brought: the program's exit code, and how much was seen."""

    exit_code: int
    samples: int
    threads: int
    losses: int
    backend: str
    why: str


@dataclass(frozen=True)
class RecordOptions:
    """How to record: see `nprof record --help`. `backend_options` are the backend's own, by name."""

    output: Path = Path("trace.db")
    backend: str = "auto"
    period: int = 1000
    machine: str = "local"
    backend_options: Mapping[str, str] = field(default_factory=dict)


def _silent(_what: str, _share: float) -> None:
    pass


def _silent_choice(_backend: str, _why: str) -> None:
    pass


def record(
    argv: Sequence[str],
    options: RecordOptions | None = None,
    *,
    progress: Progress = _silent,
    chosen: Callable[[str, str], None] = _silent_choice,
) -> RecordSummary:
    """Run argv to its end and write what was seen to options.output.

    chosen: called with (backend, why) before the program starts. Raises UsageError (no such program, output
    cannot be written, no sample seen), MachineLacksError (the backend does not work here).
    """
    options = options or RecordOptions()
    find_program(argv)
    if options.period < 1:
        raise UsageError(f"period {options.period}", "give 1 (every access) or more")
    machine = Machine.load(options.machine)
    backend, why = choose_backend(options.backend, machine)
    chosen(backend.name, why)
    with _workdir(options.output) as workdir:
        identity_dir = workdir / "identity"
        identity_dir.mkdir()
        request = RecordRequest(
            argv=argv,
            workdir=workdir,
            machine=machine,
            environment=prepare(identity_dir, os.environ),
            period=options.period,
            options=options.backend_options,
        )
        recording = backend.record(request, progress)
        identity = read_identity(identity_dir)
        meta = {
            "argv": json.dumps(list(argv)),
            "backend": backend.name,
            "backend_why": why,
            "period": options.period,
            "exit_code": recording.exit_code,
            **recording.notes,
        }
        samples, threads = write_trace(options.output, machine, recording, identity, meta, progress)
    return RecordSummary(
        exit_code=recording.exit_code,
        samples=samples,
        threads=threads,
        losses=sum(events for _, events in recording.losses),
        backend=backend.name,
        why=why,
    )


@contextmanager
def _workdir(output: Path) -> Iterator[Path]:
    """A private folder beside the output: on the disk that must hold the trace, and known to be writable."""
    if output.is_dir():
        raise UsageError(f"{output}: is a directory", "name a file")
    try:
        folder = tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent)
    except OSError as error:
        raise UsageError(
            f"{output}: cannot be written: {error.strerror}", "choose a folder that exists and is writable"
        ) from error
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
