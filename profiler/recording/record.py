"""Record one run: choose a backend, start the program under it, and make a trace of what it saw."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from numaplan.common import ASKING, UsageError, as_text, ended_by, find_program, program_files, started_as
from numaplan.machine import Machine

from ..backends.base import (
    IDENTITY,
    Backend,
    PerfChoices,
    ProgramStart,
    Progress,
    Recording,
    RecordRequest,
    check_not_killed,
)
from ..backends.choice import choose_backend
from ..backends.on_signal import await_program
from ..backends.part import RecordedPart
from ..backends.perf.kernel_files import ROOT, read_text
from ..debug.dwarf.debug_file import check_servers
from ..identity.elf import elf_facts
from ..identity.environment import prepare
from ..identity.named_machine import machine_named
from ..identity.rank import job_facts
from ..identity.read import read_identity
from ..identity.records import Identity
from ..messages.message import Way
from ..messages.recording import MESSAGES, read_messages, way_of
from .assemble import write_trace
from .workdir import workdir

HUGE_PAGES = "sys/kernel/mm/transparent_hugepage/enabled"


@dataclass(frozen=True)
class RecordSummary:
    """What a recording brought: the program's exit code, and how much was seen."""

    exit_code: int
    samples: int
    threads: int
    losses: int
    backend: str
    reason: str


@dataclass(frozen=True)
class RecordOptions:
    """How to record: see `nprof record --help`. `backend_options` are the backend's own, by name.

    choices: for backends that use perf; ranks_only: leave out a job's processes that are no rank (its
    launcher); messages: how to record what its ranks send each other; run: which of several runs this is,
    from 0; part: of the run that is recorded; start: how the program is started; debuginfod: ask its servers
    for debug information that is not on this machine.
    """

    output: Path = Path("trace.db")
    backend: str = "auto"
    period: int = 1000
    machine: str = "local"
    backend_options: Mapping[str, str] = field(default_factory=dict)
    choices: PerfChoices = field(default_factory=PerfChoices)
    ranks_only: bool = False
    messages: str = "auto"
    run: int = 0
    part: RecordedPart = field(default_factory=RecordedPart)
    start: ProgramStart = field(default_factory=ProgramStart)
    debuginfod: bool = False


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

    chosen: called with (backend, reason) before the program starts. Raises UsageError (no such program,
    output cannot be written, no sample seen), MachineLacksError (the backend does not work here).
    """
    options = options or RecordOptions()
    await_program()
    check_target(argv, options)
    if argv:
        find_program(argv)
    if options.debuginfod:
        check_servers()
    machine, backend, reason = choose(options)
    chosen(backend.name, reason)
    way = way_of(options.messages, argv, os.environ) if options.ranks_only else None
    shown = list(argv) or _arguments_of(options.choices.pids)
    with prepared(argv, options, machine, way) as request:
        started = time.monotonic()
        recording = backend.record(request, progress)
        identity = recording.identity or read_identity(request.identity_dir)
        if backend.name != "emulate" and options.part != RecordedPart():
            recording, identity = _part_of(recording, identity, options.part, shown, started)
        if way:
            recording = _with_messages(recording, identity, way, request.workdir / MESSAGES)
        meta = {
            "argv": json.dumps(as_text(shown)),
            "backend": backend.name,
            "backend_why": reason,
            "period": options.period,
            **({"exit_code": recording.exit_code} if argv else {}),  # else it is perf's own
            "run": options.run + 1,
            **recording.notes,
            **options.part.facts(),
            **_runtime(argv),
            **_huge_pages(backend.name),
            **job_facts(os.environ),
        }
        samples, threads = write_trace(
            options.output,
            machine,
            recording,
            identity,
            meta,
            progress,
            options.ranks_only,
            ask_server=options.debuginfod,
        )
    return RecordSummary(
        exit_code=recording.exit_code,
        samples=samples,
        threads=threads,
        losses=sum(events for _, events in recording.losses),
        backend=backend.name,
        reason=reason,
    )


def choose(options: RecordOptions) -> tuple[Machine, Backend, str]:
    """The machine and the backend that the options ask for, and why it was taken; raises as record()."""
    machine = machine_named(options.machine, os.environ)
    return machine, *choose_backend(options.backend, machine, options.choices, part=options.part)


def _part_of(
    recording: Recording, identity: Identity, part: RecordedPart, argv: Sequence[str], started: float
) -> tuple[Recording, Identity]:
    """What was recorded within the part; raises UsageError when it never began."""
    from .spans import common, cut, union

    spans = recording.spans
    marked = {pid: union(own) for pid, own in identity.marked.items()} if part.marked else None
    if marked is not None:
        every = union([span for own in marked.values() for span in own])
        spans = every if spans is None else common(spans, every)
    if not spans:
        check_not_killed("the program", recording.exit_code)
        raise part.nothing(argv[0] if argv else "nothing", time.monotonic() - started)
    return cut(recording, identity, spans, marked)


def _with_messages(recording: Recording, identity: Identity, way: Way, folder: Path) -> Recording:
    started = job_facts(os.environ).get("ranks", 0)
    assert isinstance(started, int)
    found = read_messages(way, folder, identity, started)
    killed = ended_by(recording.exit_code) not in (None, signal.SIGKILL, *ASKING)
    first = [way.when_killed if killed else "", recording.notes.get("warnings", "")]
    said = [*filter(None, first), *found.warnings]
    notes = {**recording.notes, **({"warnings": "; ".join(said)} if said else {})}
    if found.ranks:
        notes["messages"] = way.name
    return replace(recording, messages=found.messages, notes=notes)


def check_target(argv: Sequence[str], options: RecordOptions) -> None:
    """Raise UsageError unless there is one thing to record: a program, or what runs already."""
    choices = options.choices
    if options.period < 1:
        raise UsageError(f"period {options.period}", "give 1 (every access) or more")
    if argv and choices.pids:
        raise UsageError("--pid and a program to start", "give one of them")
    if choices.all_cpus and choices.pids:
        raise UsageError("--pid and --all-cpus", "give one of them")
    if not (argv or choices.pids or choices.all_cpus):
        raise UsageError("no program given", "end the command with the program and its arguments")


def _runtime(argv: Sequence[str]) -> dict[str, str]:
    """Go's runtime makes threads as it needs them: their order says nothing of who is who in another run."""
    facts = elf_facts(find_program(argv)) if argv else None
    return {"runtime": "go"} if facts and facts.go else {}


def _huge_pages(backend: str) -> dict[str, str]:
    """When the kernel that the program runs on makes huge pages: always, madvise or never."""
    setting = read_text(ROOT / HUGE_PAGES) if backend != "lab" else ""
    chosen = setting.partition("[")[2].partition("]")[0]
    return {"huge_pages": chosen} if chosen else {}


@contextmanager
def prepared(
    argv: Sequence[str], options: RecordOptions, machine: Machine, way: Way | None = None
) -> Iterator[RecordRequest]:
    """The request to a backend, with a private folder beside the output that is removed at the end.

    way: by which messages between ranks are recorded, too.
    """
    with workdir(options.output, [*program_files(argv), options.machine]) as folder:
        identity_dir = folder / IDENTITY
        identity_dir.mkdir()
        environment = prepare(identity_dir, os.environ)
        if way:
            (folder / MESSAGES).mkdir()
            environment = way.environment((folder / MESSAGES).resolve(), environment)
        yield RecordRequest(
            argv=started_as(argv),
            workdir=folder,
            machine=machine,
            environment=environment,
            period=options.period,
            options=options.backend_options,
            choices=options.choices,
            run=options.run,
            part=options.part,
            start=options.start,
        )


def _arguments_of(pids: Sequence[int]) -> list[str]:
    """The arguments of the first of these processes, if it still runs."""
    try:
        arguments = Path(f"/proc/{pids[0]}/cmdline").read_bytes().rstrip(b"\0").split(b"\0") if pids else []
    except OSError:
        arguments = []
    return [word.decode("utf-8", "replace") for word in arguments]


def command_line(
    argv: Sequence[str],
    options: RecordOptions,
    root: Path | None = None,
    chosen: Callable[[str, str], None] = _silent_choice,
) -> list[str]:
    """The command line by which record() would record, without running it.

    root: another machine's recorded sysfs and procfs. Raises as record().
    """
    check_target(argv, options)
    local = str(root) if root else "local"
    machine = machine_named(local if options.machine == "local" else options.machine, os.environ)
    backend, reason = choose_backend(options.backend, machine, options.choices, root or ROOT, options.part)
    chosen(backend.name, reason)
    with prepared(argv, options, machine) as request:
        return backend.command(request)
