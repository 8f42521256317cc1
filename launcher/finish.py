"""After the program's end: what was applied, compared with the plan, written and said."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaplan.common import write_document
from numaplan.launcher.compact import Compact
from numaplan.launcher.launch import AFFINITY_VARIABLES, Launch
from numaplan.launcher.observed import read_observed
from numaplan.launcher.report import make_report, warning_of
from numaplan.launcher.today import other_build

if TYPE_CHECKING:
    from numaplan.launcher.tracing import Tracer
    from numaplan.launcher.watch import Watch


def finish(
    launch: Launch,
    form: Compact,
    workdir: Path,
    code: int,
    tracer: "Tracer | None",
    watch: "Watch | None",
) -> int:
    """Write the report, say the summary; the exit code that the command ends with."""
    request = launch.request
    observed = read_observed(workdir)
    notes = (*_notes(launch, tracer), *(watch.reasons() if watch else ()))
    applied = make_report(launch.plan, form, observed, code, notes)
    if watch and watch.reasons():
        applied = msgspec.structs.replace(applied, ok=False)
    if request.report_path:
        write_document(request.report_path.replace("%r", launch.root), applied.to_json())
    if not request.quiet:
        who = "nlaunch" if launch.root == "p0" else f"nlaunch: {launch.root}"
        warning = warning_of(applied, launch.plan)
        if warning:
            print(f"{who}: warning: {warning}", file=sys.stderr)
        print(f"{who}: {applied.summary}", file=sys.stderr)
    return 1 if request.strict and not applied.ok and code == 0 else code


def _notes(launch: Launch, tracer: "Tracer | None") -> list[str]:
    plan, facts = launch.plan, launch.facts
    notes = [
        f"{name} is set: the program's runtime binds too"
        for name in AFFINITY_VARIABLES
        if launch.environment.get(name)
    ]
    if tracer and tracer.failed:
        notes.append("the tracer could not attach (a container without ptrace?): nothing was bound")
    elif tracer and plan.memory:
        why = launch.outside or "--by ptrace"
        notes.append(f"memory was left to first touch: the program was followed from outside ({why})")
    elif launch.outside and not tracer:
        notes.append(f"nothing can be loaded into the program: {launch.outside}")
    if facts and other_build(plan, facts):
        notes.append("the program is another build than the one the plan was made for")
    return notes
