"""A launch from its request to its summary: check, translate the plan, start, and say what was applied.

What attends the program while it runs (the tracer, --watch, --match, --online) is loaded only when it is
asked for: the program waits.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaplan.common import NumaplanError, fail, load_numpy, run_program
from numaplan.profiler import of_no_other, prepare

from ..enforce.folder import launch_folder
from ..enforce.plan_table import LIBRARY, PlanTable, make_plan_table
from ..enforce.process_memory import memory_notes
from ..enforce.tracer import TRACER, Tracer
from .request import CheckedLaunch, LaunchRequest, check

if TYPE_CHECKING:
    from ..online.session import OnlineSession
    from ..roles.matcher import Matcher
    from ..verify.watch import Watch

TABLE = "plan.bin"


class Attendants(msgspec.Struct, frozen=True):
    """What attends the program while it runs; None: not asked for."""

    tracer: Tracer | None
    watch: "Watch | None"
    matcher: "Matcher | None"
    online: "OnlineSession | None"

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

    def notes(self, launch: CheckedLaunch, table: PlanTable) -> list[str]:
        """What there is to say of the run."""
        notes = []
        if self.tracer and self.tracer.failed:
            notes.append("the tracer could not attach (a container without ptrace?): nothing was bound")
        elif self.tracer:
            nodes = table.spread.get(launch.root, ())
            notes += memory_notes(launch.plan, nodes, launch.obstacle or "--by ptrace")
        if self.online:
            notes.append(f"--online continued from the plan: {self.online.moves()}")
        return notes


def launch_program(request: LaunchRequest, environment: Mapping[str, str] | None = None) -> int:
    """Run the program with its plan and return the exit code that the command ends with.

    Writes the report; one summary line, and one warning if there is something to warn of, go to stderr.
    """
    return launch_checked(check(request, environment))


def launch_checked(launch: CheckedLaunch) -> int:
    """The same for what was checked. Raises NumaplanError only before the program's start."""
    request = launch.request
    if launch.warnings and not request.quiet:
        from .finish import say

        say(launch, *launch.warnings)
    allowed = sorted(os.sched_getaffinity(0) & set(launch.machine.cpus))
    table = make_plan_table(
        launch.plan,
        launch.machine,
        launch.program,
        request.unplanned,
        launch.environment,
        allowed,
        autonuma=launch.autonuma,
    )
    with launch_folder({TABLE: table.data}) as workdir:
        attendants = _prepare(launch, workdir, table)
        code = _run(launch, workdir, attendants, table.first.get(launch.root, frozenset()))
        if attendants.online:
            _save(attendants.online, request.argv, workdir, code)
        try:
            # Only now: reading and comparing needs imports that would keep the program waiting.
            load_numpy()
            from .finish import Attended, finish

            matcher, watch = attendants.matcher, attendants.watch
            attended = Attended(
                matcher.plan if matcher else launch.plan,
                matcher.outcome() if matcher else "",
                watch.reasons() if watch else (),
                attendants.notes(launch, table),
            )
            return finish(launch, table, workdir, code, attended)
        except (NumaplanError, MemoryError) as error:
            fail("nlaunch", str(error) or "not enough memory to say what was applied", code)
            # The program's own: what failed is only ours, but where that is what is asked for.
            return code or int(request.strict)


def _save(online: "OnlineSession", argv: Sequence[str], workdir: Path, code: int) -> None:
    """Write the refined placement, or say why not: what was applied of the plan is told all the same."""
    try:
        online.save(argv, workdir)
    except (NumaplanError, MemoryError) as error:
        fail("nlaunch", str(error) or "not enough memory to save what was refined", code)


def _prepare(launch: CheckedLaunch, workdir: Path, table: PlanTable) -> Attendants:
    """Those that the request asks for, ready to attend the program; what they need is loaded."""
    request = launch.request
    watch = matcher = online = None
    if request.match or request.watch or request.online:
        load_numpy()
    if request.match:
        from ..roles.matcher import Matcher

        matcher = Matcher(launch.plan, table, workdir, request.match_seconds, request.match_trace)
    if request.watch:
        from ..verify.watch import Watch

        current = (lambda: matcher.plan) if matcher else (lambda: launch.plan)
        watch = Watch(current, table, workdir, request.watch, request.quiet)
    tracer = None
    if launch.from_outside:
        spread = table.spread.get(launch.root, ())
        tracer = Tracer(
            workdir, workdir / TABLE, launch.root, request.override, spread, autonuma=launch.autonuma
        )
    if request.online:
        from ..online.session import OnlineSession

        masks = [frozenset(thread.cpus) for thread in launch.plan.threads]
        # What we start is watched with us.
        online = OnlineSession(request.online, launch.machine, [os.getpid()], masks)
    return Attendants(tracer, watch, matcher, online)


def _run(launch: CheckedLaunch, workdir: Path, attendants: Attendants, first: frozenset[int]) -> int:
    """Start the program the way that suits it, and wait for its end.

    first: cpus of its first thread, which it inherits: so what the loader reads and writes is near them.
    """
    ours = os.sched_getaffinity(0)

    def started(pid: int) -> None:
        os.sched_setaffinity(0, ours)
        attendants.started(pid)

    environment = _environment(launch, workdir)
    if first and first <= ours and not launch.from_outside:
        os.sched_setaffinity(0, first)
    try:
        return run_program(
            [*launch.request.argv],
            environment,
            before_exec=attendants.tracer.attach if attendants.tracer else None,
            started=started,
            pass_interrupts=True,
        )
    finally:
        os.sched_setaffinity(0, ours)
        attendants.stop()


def _environment(launch: CheckedLaunch, workdir: Path) -> dict[str, str]:
    """The program's environment, with the library where that binds its threads."""
    if launch.from_outside:
        environment = of_no_other(launch.environment)
    else:
        environment = prepare(workdir, launch.environment, LIBRARY)
        environment["NUMAPLAN_PLAN"] = str((workdir / TABLE).resolve())
        environment["NUMAPLAN_TRACER"] = str(TRACER)  # for what it starts
        if launch.request.override:
            environment["NUMAPLAN_OVERRIDE"] = "1"
    if launch.facts and launch.facts.go:
        # It counts its cpus again while it runs, by a system call of its own, on a thread that may be bound.
        environment.setdefault("GOMAXPROCS", str(len(os.sched_getaffinity(0))))
    return environment
