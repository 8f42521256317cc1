"""`nmap check`: does the plan in the repository still fit what the program does today?"""

from pathlib import Path
from typing import Annotated

import typer

from numaplan.common.cli import Debug, Json
from numaplan.mapper.cli_plan import Comm, Effort, Loads, Phases, Seed, Symmetrise, TraceFile


def check_command(
    baseline: Annotated[Path, typer.Option("--baseline", help="The plan to judge.", show_default=False)],
    trace: TraceFile = None,
    comm: Comm = None,
    loads: Loads = None,
    phases: Phases = None,
    symmetrise: Symmetrise = False,
    max_regress: Annotated[str, typer.Option(help="How much worse than today's best it may be.")] = "5%",
    junit: Annotated[Path | None, typer.Option(help="Write the verdict as JUnit XML.")] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write today's best plan over the baseline.")
    ] = False,
    seed: Seed = 0,
    effort: Effort = "normal",
    as_json: Json = False,
    debug: Debug = False,
) -> int:
    """Judge a plan by today's trace: exit 0 when it is still good, 1 when it has become worse, 2 on misuse.

    Example: nmap check trace.db --baseline plan.json --max-regress 5% --junit check.xml
    """
    from numaplan.mapper.check import check_plan_today, junit_xml, parse_share, to_document
    from numaplan.mapper.inputs import read_workload, say
    from numaplan.mapper.plan import Plan

    allowed = parse_share(max_regress)
    plan = Plan.load(baseline)
    machine = plan.machine.machine()
    name = str(baseline)
    given = [trace] if trace else None
    by_phase = plan.objective == "phased"
    workload = read_workload(given, comm, loads, phases=phases, by_phase=by_phase, symmetrise=symmetrise)
    for note in workload.notes:
        say(note)
    verdict = check_plan_today(plan, workload, machine, allowed, seed=seed, effort=effort, name=name)
    for note in verdict.notes:
        say(note)
    if junit is not None:
        from numaplan.common import write_document

        write_document(junit, junit_xml(verdict))
    if update:
        verdict.today.save(baseline)
        say(f"{baseline}: now today's best plan; the verdict is on what it was")
    print(to_document(verdict) if as_json else "\n".join(verdict.lines))
    return 0 if verdict.ok or update else 1


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check")(check_command)
