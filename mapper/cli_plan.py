"""`nmap plan`, and the options that all commands share which take a trace or matrices."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from numaplan.common import UsageError
from numaplan.common.cli import Debug

if TYPE_CHECKING:
    from numaplan.mapper.workload import Workload
    from numaplan.profiler.machine import Machine

MOST_CPUS = 1 << 16  # no machine has more; a range may not take memory without end

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
    from numaplan.mapper.pins import read_pins
    from numaplan.mapper.planner import PlanOptions, make_plan

    by_phase = objective == "phased"
    workload, target = read_input(
        traces, comm, loads, machine, phases=phases, by_phase=by_phase, symmetrise=symmetrise
    )
    options = PlanOptions(
        method=method,
        objective=objective,
        effort=effort,
        seed=seed,
        tolerance=tolerance,
        nodes=_node_list(nodes),
        smt=smt,
        without_cpus=_taken(_cpu_list(without_cpus), beside or [], target),
        pins=read_pins(pin or []),
        next_touch=next_touch,
    )
    planned = make_plan(workload, target, options)
    planned.plan.save(output)
    for note in planned.notes:
        say(note)
    from numaplan.mapper.summary import summary

    print("\n".join(summary(planned.plan, output)))


def read_input(
    traces: Sequence[Path] | None,
    comm: Path | None,
    loads: Path | None,
    machine: str | None,
    *,
    pages: bool = True,
    phases: Path | None = None,
    by_phase: bool = False,
    symmetrise: bool = False,
) -> "tuple[Workload, Machine]":
    """The workload and the machine that the options name; raises UsageError for none or too many."""
    from numaplan.profiler.machine import Machine

    if not traces and comm is not None and machine is None:
        raise UsageError("a matrix does not say for which machine", "add --machine, such as 4x2 or local")
    target = Machine.load(machine) if machine else None
    workload = read_workload(
        traces, comm, loads, pages=pages, phases=phases, by_phase=by_phase, symmetrise=symmetrise
    )
    if target is None:
        assert workload.machine is not None
        target = workload.machine
    return workload, target


def read_workload(
    traces: Sequence[Path] | None,
    comm: Path | None,
    loads: Path | None,
    *,
    pages: bool = True,
    phases: Path | None = None,
    by_phase: bool = False,
    symmetrise: bool = False,
) -> "Workload":
    """The workload that the options name; raises UsageError for none or too many."""
    if traces and comm is not None:
        raise UsageError("both a trace and --comm given", "give one of them")
    if comm is not None:
        from numaplan.mapper.workload import workload_of_files

        return workload_of_files(comm, loads, phases, symmetrise)
    if not traces:
        raise UsageError("neither a trace nor --comm given", "name a trace.db, or give --comm comm.csv")
    if loads is not None or phases is not None:
        raise UsageError(
            f"--{'loads' if loads is not None else 'phases'} goes with --comm", "a trace has its own"
        )
    from numaplan.mapper.trace_workload import workload_of_traces

    return workload_of_traces(traces, pages=pages, by_phase=by_phase)


def _taken(cpus: tuple[int, ...], plans: Sequence[Path], machine: "Machine") -> tuple[int, ...]:
    """The cpus to keep free: those named, and those of other plans for the same machine."""
    from numaplan.mapper.plan import Plan
    from numaplan.mapper.planner import same_machine

    taken = set(cpus)
    for path in plans:
        plan = Plan.load(path)
        same_machine(plan, machine, str(path))
        taken |= {cpu for thread in plan.threads for cpu in thread.cpus}
    return tuple(sorted(taken))


def _node_list(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise UsageError(f"--nodes {text}", "give node ids separated by commas, such as 0,2") from None


def _cpu_list(text: str) -> tuple[int, ...]:
    """Cpus of a list such as 0,4-7."""
    cpus: list[int] = []
    try:
        for part in text.split(",") if text else []:
            first, _, last = part.partition("-")
            low, high = int(first), int(last or first)
            if not 0 <= low <= high < MOST_CPUS:
                raise ValueError
            cpus += range(low, high + 1)
    except ValueError:
        raise UsageError(f"--without-cpus {text}", "give cpus and ranges, such as 0,4-7") from None
    return tuple(dict.fromkeys(cpus))


def say(text: str) -> None:
    """A word to people, on stderr."""
    print(f"nmap: {text}", file=sys.stderr)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(plan_command)
