"""`nmap plan`, and the options that all commands share which take a trace or matrices."""

from pathlib import Path
from typing import Annotated

import typer

from numaplan.common.cli import Debug
from numaplan.mapper.plan_request import PlanRequest, write_plan

TraceFile = Annotated[
    Path | None, typer.Argument(metavar="[TRACE]", help="A trace.db that 'nprof record' wrote.")
]
Comm = Annotated[Path | None, typer.Option("--comm", help="A communication matrix, instead of a trace.")]
Loads = Annotated[Path | None, typer.Option("--loads", help="A load vector to go with --comm.")]
MachineName = Annotated[
    str | None,
    typer.Option(
        "--machine", help="What 'nmap machine' takes; default: the machine in the trace.", show_default=False
    ),
]
Phases = Annotated[
    Path | None, typer.Option("--phases", help="Loads by phase (phases.csv) to go with --comm.")
]
Symmetrise = Annotated[
    bool,
    typer.Option("--symmetrise", help="Take a --comm that counts directions as the mean of both."),
]
Objective = Annotated[str, typer.Option(help="balanced, remote, hop or phased (balanced in every phase).")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same plan.")]
Effort = Annotated[str, typer.Option(help="How hard to search: fast, normal or max.")]


def plan_command(
    traces: Annotated[
        list[Path] | None,
        typer.Argument(metavar="TRACE", help="Traces of 'nprof record': several runs, or a job's ranks."),
    ] = None,
    comm: Comm = None,
    loads: Loads = None,
    machine: MachineName = None,
    method: Annotated[str, typer.Option(help="A method of 'nmap compare'.")] = "best",
    objective: Objective = "balanced",
    output: Annotated[Path, typer.Option("-o", "--output", help="The plan to write.")] = Path("plan.json"),
    seed: Seed = 0,
    effort: Effort = "normal",
    tolerance: Annotated[
        float, typer.Option(help="How far a node's load may be off its share (objective balanced, phased).")
    ] = 0.05,
    nodes: Annotated[str, typer.Option(help="Use only these nodes, such as 0,2.")] = "",
    smt: Annotated[str, typer.Option(help="share: use all hwthreads; avoid: one a core.")] = "share",
    without_cpus: Annotated[
        str, typer.Option(help="Keep these cpus free for others, such as 0,4-7.", metavar="CPUS")
    ] = "",
    beside: Annotated[
        list[Path] | None,
        typer.Option(metavar="PLAN", help="Keep the cpus of this plan, of another program, free."),
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="THREAD=NODE",
            help="Thread 0.3 on node 1: 0.3=1; on a cpu: 0.3=cpu:5; @FILE: a file of them.",
        ),
    ] = None,
    phases: Phases = None,
    symmetrise: Symmetrise = False,
    next_touch: Annotated[
        bool,
        typer.Option("--next-touch", help="Memory whose users change between phases moves along with them."),
    ] = False,
    debug: Debug = False,
) -> None:
    """Plan where the threads and the memory of a recorded program should live.

    Of several runs of one program the plan is for their mean, and says whether threads keep their roles from
    run to run; without that a plan of one run does not fit the next.

    Example: nmap plan trace.db --machine 4x2 -o plan.json
    """
    write_plan(
        PlanRequest(
            traces=traces or (),
            comm=comm,
            loads=loads,
            machine=machine,
            method=method,
            objective=objective,
            output=output,
            seed=seed,
            effort=effort,
            tolerance=tolerance,
            nodes=nodes,
            smt=smt,
            without_cpus=without_cpus,
            beside=beside or (),
            pin=pin or (),
            phases=phases,
            symmetrise=symmetrise,
            next_touch=next_touch,
        )
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(plan_command)
