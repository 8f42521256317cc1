"""Run a program with its plan: check, translate, start, and say what was applied."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from numaplan.common import NumaplanError, UsageError
from numaplan.common.frame import fail
from numaplan.common.lazy import load_numpy
from numaplan.common.process import find_program, run_program
from numaplan.launcher.compact import Compact, compact
from numaplan.launcher.elf import ElfFacts, elf_facts
from numaplan.launcher.folder import launch_folder
from numaplan.launcher.program import executable_of
from numaplan.launcher.today import fit_plan, own_part
from numaplan.launcher.tracing import TRACER, root_name, why_outside
from numaplan.mapper import Plan
from numaplan.profiler.identity import prepare
from numaplan.profiler.machine import Machine

if TYPE_CHECKING:
    from numaplan.launcher.matching import Matcher
    from numaplan.launcher.online.options import OnlineOptions
    from numaplan.launcher.online.session import Session
    from numaplan.launcher.tracing import Tracer
    from numaplan.launcher.watch import Watch

LIBRARY = Path(__file__).resolve().parent / "native" / "enforce.so"
FORM = "plan.bin"
UNPLANNED = ("float", "anywhere", "inherit")
BY = ("auto", "preload", "ptrace")

# Variables by which OpenMP runtimes bind threads on their own; ours comes later and wins at birth.
AFFINITY_VARIABLES = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


@dataclass(frozen=True)
class LaunchRequest:
    """What to launch and how.

    unplanned: threads that the plan does not name `float` on the cpus of their process's nodes, run
    `anywhere` the process may, or `inherit` what their creator has; strict: a miss makes exit code 1; by: the
    `preload` library, `ptrace` from outside, or `auto`; override: the plan holds where the program sets its
    own affinity; watch: seconds between looks at the running program, 0 none; match: after match_seconds,
    bind threads by the roles that they play, as the plan tells them or, better, the trace it was made from;
    online: keep refining from the plan on.
    """

    argv: Sequence[str]
    plan_path: str
    report_path: str = ""
    remap: bool = False
    strict: bool = False
    unplanned: str = "float"
    quiet: bool = False
    by: str = "auto"
    override: bool = False
    watch: float = 0.0
    match: bool = False
    match_seconds: float = 2.0
    match_trace: str = ""
    online: "OnlineOptions | None" = None


@dataclass(frozen=True)
class Launch:
    """A request that was checked: what runs, on which machine, with which part of the plan.

    outside: why the preload library cannot see the program's threads, empty when it can; root: name of the
    first process.
    """

    request: LaunchRequest
    machine: Machine
    plan: Plan
    environment: Mapping[str, str]
    program: str
    executable: str
    facts: ElfFacts | None
    outside: str
    root: str


def plan_for(
    request: LaunchRequest, machine: Machine, program: str = "", facts: ElfFacts | None = None
) -> Plan:
    """The request's plan as it can be used on `machine`; raises UsageError when it was made for another."""
    return fit_plan(request.plan_path, request.remap, machine, program, facts)


def check(request: LaunchRequest, environment: Mapping[str, str] | None = None) -> Launch:
    """Everything that can be wrong before a program is started; raises UsageError."""
    environment = dict(os.environ if environment is None else environment)
    program = find_program(request.argv)
    executable = executable_of(program)
    facts = elf_facts(executable)
    root = root_name(environment)
    if root != "p0":
        _unbind()
    machine = Machine.load("local")
    plan = own_part(plan_for(request, machine, program, facts), root)
    _check_report_path(request.report_path)
    outside = why_outside(executable, facts)
    return Launch(request, machine, plan, environment, program, executable, facts, outside, root)


def launch_program(request: LaunchRequest, environment: Mapping[str, str] | None = None) -> int:
    """Run the program with its plan and return the exit code that the command ends with.

    Writes the report; one summary line, and one warning if there is something to warn of, go to stderr.
    """
    launch = check(request, environment)
    allowed = sorted(os.sched_getaffinity(0) & set(launch.machine.cpus))
    form = make_form(
        launch.plan, launch.machine, launch.program, request.unplanned, launch.environment, allowed
    )
    with launch_folder({FORM: form.data}) as workdir:
        helpers = _helpers(launch, workdir, workdir / FORM, form)
        code = _run(launch, workdir, workdir / FORM, helpers)
        try:
            if helpers.online:
                helpers.online.save(request.argv, workdir)
            # Only now: reading and comparing needs imports that would keep the program waiting.
            load_numpy()
            from numaplan.launcher.finish import finish

            return finish(launch, form, workdir, code, helpers)
        except (NumaplanError, MemoryError) as error:
            if code == 0:
                raise
            fail("nlaunch", str(error) or "not enough memory to say what was applied", code)
            return code  # the program's own: what failed is only ours


@dataclass(frozen=True)
class Helpers:
    """Who follows the program while it runs; None: not needed."""

    tracer: "Tracer | None"
    watch: "Watch | None"
    matcher: "Matcher | None"
    online: "Session | None" = None

    def started(self, pid: int) -> None:
        """The program runs."""
        if self.online:
            self.online.start(lambda: [pid])
        if self.tracer:
            self.tracer.started()
        for other in (self.watch, self.matcher):
            if other:
                other.start()

    def stop(self) -> None:
        """It has ended."""
        for other in (self.watch, self.matcher):
            if other:
                other.stop()
        if self.online:
            self.online.stop(restore=False)


def _helpers(launch: Launch, workdir: Path, place: Path, form: Compact) -> Helpers:
    request = launch.request
    watch = matcher = None
    if request.match or request.watch:
        load_numpy()
    if request.match:
        from numaplan.launcher.matching import Matcher

        matcher = Matcher(launch.plan, form, workdir, request.match_seconds, request.match_trace)
    if request.watch:
        from numaplan.launcher.watch import Watch

        current = (lambda: matcher.plan) if matcher else (lambda: launch.plan)
        watch = Watch(current, form, workdir, request.watch, request.quiet)
    return Helpers(_tracer(launch, workdir, place), watch, matcher, _online(launch))


def _online(launch: Launch) -> "Session | None":
    if launch.request.online is None:
        return None
    load_numpy()
    from numaplan.launcher.online.session import Session

    masks = [frozenset(thread.cpus) for thread in launch.plan.threads]
    session = Session(launch.request.online, launch.machine, masks)
    session.prepare([os.getpid()])  # what we start is watched with us
    return session


def _run(launch: Launch, workdir: Path, place: Path, helpers: Helpers) -> int:
    """Start the program the way that suits it, and wait for its end."""
    environment = dict(launch.environment)
    if helpers.tracer is None:
        environment = prepare(workdir, environment, LIBRARY)
        environment["NUMAPLAN_PLAN"] = str(place.resolve())
        environment["NUMAPLAN_TRACER"] = str(TRACER)  # for what it starts: native/enforce/outside.c
        if launch.request.override:
            environment["NUMAPLAN_OVERRIDE"] = "1"
    if launch.facts and launch.facts.go:
        # It counts its cpus again while it runs, by a system call of its own, on a thread that may be bound.
        environment.setdefault("GOMAXPROCS", str(len(os.sched_getaffinity(0))))
    attach = helpers.tracer.attach if helpers.tracer else None
    try:
        return run_program(
            [*launch.request.argv],
            environment,
            before_exec=attach,
            started=helpers.started,
            pass_interrupts=True,
        )
    finally:
        helpers.stop()


def _tracer(launch: Launch, workdir: Path, place: Path) -> "Tracer | None":
    by = launch.request.by
    if by == "preload" or (by == "auto" and not launch.outside):
        return None
    from numaplan.launcher.tracing import Tracer, gains_privileges

    if by == "auto" and os.geteuid() != 0 and gains_privileges(launch.executable):
        return None  # the kernel would take its privileges away under a tracer that has none
    return Tracer(workdir, place, launch.root, launch.request.override)


def make_form(
    plan: Plan,
    machine: Machine,
    program: str,
    unplanned: str,
    environment: Mapping[str, str],
    allowed: Sequence[int] = (),
) -> Compact:
    """The plan's compact form for a program on this machine.

    allowed: cpus that threads outside the plan may have, all of the machine's by default.
    """
    floating = _floating(plan, machine, unplanned, allowed or machine.cpus)
    if not any(region.region.kind == "static" for region in plan.memory):
        return compact(plan, floating, lambda _module, _symbol: None)
    from numaplan.launcher.program import StaticData

    return compact(plan, floating, StaticData(executable_of(program), environment).locate)


def _floating(
    plan: Plan, machine: Machine, unplanned: str, everything: Sequence[int]
) -> dict[str, Sequence[int]]:
    """Cpus of threads that the plan does not name, by process; "": processes that it does not name."""
    if unplanned == "inherit":
        return {}
    floating: dict[str, Sequence[int]] = {"": everything}
    for process in {thread.process for thread in plan.threads}:
        nodes = {thread.node for thread in plan.threads if thread.process == process}
        near = tuple(cpu for cpu in everything if machine.node_of_cpu[cpu] in nodes)
        floating[process] = near if unplanned == "float" and near else everything
    return floating


def _unbind() -> None:
    """A rank was bound by its starter before it came to us; the plan says where it belongs."""
    with suppress(OSError):
        os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))


def _check_report_path(path: str) -> None:
    """A report that cannot be written should stop us before the program runs, not after."""
    if path and not Path(path).absolute().parent.is_dir():
        raise UsageError(f"{path}: no folder {Path(path).parent}", "create it first")
    if path and Path(path).is_dir():
        raise UsageError(f"{path}: is a directory", "name a file")
