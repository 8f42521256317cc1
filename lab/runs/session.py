"""Counted runs in one guest: a program under one configuration after another."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import msgspec

from numaplan.common import (
    UsageError,
    available_bytes,
    find_program,
    program_files,
    swept_folder,
    tell,
    temporary_folder,
)
from numaplan.launcher import fit_plan, misfits
from numaplan.profiler import machine_named, prepare

from ..guest.booting import AGAIN, boot
from ..guest.guest import Guest, Outcome
from ..guest.health import Patience
from ..guest.job import Job
from ..guest.shape import (
    USUAL_MIB,
    GuestShape,
    dense,
    parse_memory,
    renumbering,
    scaled,
    shape_guest,
    with_cpus_per_node,
)
from ..places import TEMPORARY, open_to_users
from .configs import CONFIGS, ONLINE, Options, PlannedLaunch, is_launcher
from .counts import parse_counts
from .results import LabRun, lab_run
from .threads import Starter, program_threads

STDERR = 2


@dataclass(frozen=True)
class Request:
    """What to run where.

    machine: what `nmap machine` takes; scale: "KxC" or nothing; cpus_per_node: 0 for all; memory: of the
    whole guest, as "2G" or "1500M", nothing for the usual; timeout: seconds a run, 0 for no limit; well: the
    exit code of a run that did not fail; patience: with a guest that hangs.
    """

    argv: Sequence[str]
    machine: str
    scale: str = ""
    cpus_per_node: int = 0
    memory: str = ""
    timeout: float = 0.0
    plan: str = ""
    online: str = ""
    by_thread: bool = False
    cache: bool = False
    well: int = 0
    patience: Patience = field(default_factory=Patience)


def guest_shape(request: Request) -> GuestShape:
    """The guest a request asks for; raises UsageError or MachineLacksError when it cannot be."""
    machine = machine_named(request.machine, os.environ)
    if request.scale:
        machine = scaled(machine, request.scale)
    if request.cpus_per_node:
        machine = with_cpus_per_node(machine, request.cpus_per_node)
    if renamed := renumbering(machine):
        tell(f"nlab: {renamed}")
    machine = dense(machine)
    memory = parse_memory(request.memory) if request.memory else max(USUAL_MIB, 128 * len(machine.nodes))
    return shape_guest(machine, memory, available_bytes() >> 20)


class Session:
    """A booted guest and the program to run in it; a context manager, which boots it.

    say: told what happens.
    """

    def __init__(self, shape: GuestShape, request: Request, folder: Path, say: Callable[[str], None]) -> None:
        self.request = request
        self._shape = shape
        self._say = say
        self._guests = ExitStack()
        self._folder = folder
        self._program = find_program(request.argv)

    def __enter__(self) -> "Session":
        self.guest = self._boot()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._guests.__exit__(kind, error, trace)

    def reboot(self) -> None:
        """Another guest in place of one that failed by a fault of QEMU's."""
        self._say(AGAIN)
        self._guests.close()
        self.guest = self._boot()

    def _boot(self) -> Guest:
        guest = boot(self._guests, self._made, self._folder, self._say)
        self._say(f"booted in {guest.boot_seconds:.1f} s")
        return guest

    def _made(self, folder: Path) -> Guest:
        return Guest(self._shape, folder, cache=self.request.cache, patience=self.request.patience)

    def run(self, config: str, stdin: int = -1, stdout: int = -1, stderr: int = -1) -> LabRun:
        """Run the program once under a configuration, its streams on these descriptors (-1: none)."""
        with temporary_folder("run-", self._folder) as folder:
            options = self._options(config, folder)
            argv, limit = self.request.argv, self.request.timeout
            job = Job(self._program, argv, os.environ, str(Path.cwd()), limit, exclude=is_launcher(argv))
            job = CONFIGS[config](job, self.guest.shape.machine, options)
            starter = Starter.LAUNCHER if job.exclude else Starter.PROGRAM
            if options.launch is not None and options.launch.from_outside:
                starter = Starter.BECOMES
            apart = self.request.by_thread or starter is not Starter.PROGRAM
            trace = folder / "trace" if apart else None
            open_to_users(folder)
            if config in ONLINE:
                outcome = self._attended(job, (stdin, stdout, stderr), trace, options, folder)
            else:
                outcome = self.guest.run(job, stdin, stdout, stderr, trace)
            run = self._result(config, outcome, trace, starter)
            if options.launch is not None:
                run.applied = options.launch.report(outcome.exit_code)
        return run

    def _attended(
        self, job: Job, streams: tuple[int, int, int], trace: Path | None, options: Options, folder: Path
    ) -> Outcome:
        """Run a job with a loop on the host; what it says goes where the program's stderr goes to ours."""
        from ..online.attending import attending, read_online

        command = read_online(self.request.online)
        if streams[2] != STDERR:
            command = msgspec.structs.replace(command, quiet=True)
        planned = options.launch.masks if options.launch else ()
        with attending(command, self.guest, planned) as loop:
            outcome = self.guest.run(job, *streams, trace)
        loop.save(self.request.argv, folder)
        return outcome

    def _options(self, config: str, folder: Path) -> Options:
        """What the configuration needs, made in the run's folder."""
        plan, environment = self.request.plan if config == "plan" else "", {}
        if config in ONLINE:
            from ..online.attending import read_online

            command = read_online(self.request.online)
            plan = command.plan
            if command.save and not plan:
                environment = prepare(folder, os.environ)
        if not plan:
            return Options(environment=environment)
        machine = self.guest.shape.machine
        fitted = fit_plan(plan, machine, remap=True)
        return Options(PlannedLaunch(fitted, self._program, machine, os.environ, folder))

    def _result(self, config: str, outcome: Outcome, trace: Path | None, starter: Starter) -> LabRun:
        machine = self.guest.shape.machine
        counts = parse_counts(outcome.counts, len(machine.cpus), len(machine.nodes))
        threads = None
        if trace is not None:
            counted, threads = program_threads(trace, counts, starter)
            ours = counts._replace(counted=counted)
            left_out = int(counts.accesses.sum() - ours.accesses.sum())
            counts = ours._replace(excluded=counts.excluded + left_out)
        run = lab_run(
            machine,
            counts,
            config=config,
            argv=self.request.argv,
            kernel=outcome.numbers,
            exit_code=outcome.exit_code,
            timed_out=outcome.late,
            seconds=outcome.seconds,
            cached=self.request.cache,
            well=self.request.well,
        )
        if self.request.by_thread:
            run.threads = threads
        return run


@contextmanager
def open_session(request: Request, say: Callable[[str], None]) -> Iterator[Session]:
    """Check the request, boot its guest, and take it down at the end, whatever happens."""
    find_program(request.argv)
    plan = None
    if request.plan:
        from numaplan.mapper import Plan

        plan = Plan.load(request.plan)  # tell of what is wrong before a boot, not after
    if request.online:
        from ..online.attending import read_online

        read_online(request.online, [request.plan, request.machine, *program_files(request.argv)])
    if not math.isfinite(request.timeout):
        raise UsageError(f"--timeout {request.timeout}: not a number of seconds", "give 0 for no limit")
    shape = guest_shape(request)
    for reason in misfits(plan, shape.machine) if plan else ():
        tell(f"nlab: warning: {request.plan}: {reason}; fitted as by 'nlaunch --remap'")
    with swept_folder(TEMPORARY) as folder:
        say(
            f"booting {len(shape.machine.nodes)} nodes, {len(shape.machine.cpus)} cpus, {shape.total_mib} MiB"
        )
        with Session(shape, request, folder, say) as session:
            yield session
