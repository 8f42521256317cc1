"""A launch from its request to its summary: check, translate the plan, start, and say what was applied."""

import os
from collections.abc import Mapping
from pathlib import Path

from numaplan.common import NumaplanError, fail, load_numpy, run_program
from numaplan.profiler import prepare

from ..enforce.folder import launch_folder
from ..enforce.plan_table import LIBRARY, make_plan_table
from ..enforce.tracer import TRACER
from .helpers import Helpers, prepare_helpers
from .request import CheckedLaunch, LaunchRequest, check

TABLE = "plan.bin"


def launch_program(request: LaunchRequest, environment: Mapping[str, str] | None = None) -> int:
    """Run the program with its plan and return the exit code that the command ends with.

    Writes the report; one summary line, and one warning if there is something to warn of, go to stderr.
    """
    launch = check(request, environment)
    allowed = sorted(os.sched_getaffinity(0) & set(launch.machine.cpus))
    table = make_plan_table(
        launch.plan, launch.machine, launch.program, request.unplanned, launch.environment, allowed
    )
    with launch_folder({TABLE: table.data}) as workdir:
        helpers = prepare_helpers(launch, workdir, workdir / TABLE, table)
        code = _run(launch, workdir, helpers)
        try:
            if helpers.online:
                helpers.online.save(request.argv, workdir)
            # Only now: reading and comparing needs imports that would keep the program waiting.
            load_numpy()
            from .finish import finish

            return finish(launch, table, workdir, code, helpers)
        except (NumaplanError, MemoryError) as error:
            if code == 0:
                raise
            fail("nlaunch", str(error) or "not enough memory to say what was applied", code)
            return code  # the program's own: what failed is only ours


def _run(launch: CheckedLaunch, workdir: Path, helpers: Helpers) -> int:
    """Start the program the way that suits it, and wait for its end."""
    try:
        return run_program(
            [*launch.request.argv],
            _environment(launch, workdir, preload=helpers.tracer is None),
            before_exec=helpers.tracer.attach if helpers.tracer else None,
            started=helpers.started,
            pass_interrupts=True,
        )
    finally:
        helpers.stop()


def _environment(launch: CheckedLaunch, workdir: Path, preload: bool) -> dict[str, str]:
    """The program's environment, with the library where that binds its threads."""
    environment = dict(launch.environment)
    if preload:
        environment = prepare(workdir, environment, LIBRARY)
        environment["NUMAPLAN_PLAN"] = str((workdir / TABLE).resolve())
        environment["NUMAPLAN_TRACER"] = str(TRACER)  # for what it starts: native/enforce/outside.c
        if launch.request.override:
            environment["NUMAPLAN_OVERRIDE"] = "1"
    if launch.facts and launch.facts.go:
        # It counts its cpus again while it runs, by a system call of its own, on a thread that may be bound.
        environment.setdefault("GOMAXPROCS", str(len(os.sched_getaffinity(0))))
    return environment
