"""`nmap machine`, `nmap show`, `nmap diff`, `nmap export`: look at machines and plans."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from numaplan.common import UsageError
from numaplan.common.cli import Debug, Json

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan.json that 'nmap plan' wrote.")]


def machine_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="[SOURCE]",
            help="local, an hwloc XML or machine.json file, a folder as for --sysfs or a tar of one, "
            "a built-in name, AxB.",
        ),
    ] = "local",
    sysfs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A tree recorded elsewhere, with sys/devices/system inside.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show a machine: its nodes, their cpus and memory, the distances between them.

    Example: nmap machine 4x2 --json > machine.json
    """
    from numaplan.profiler.machine import Machine

    if sysfs is not None:
        if source != "local":
            raise UsageError(f"both {source} and --sysfs given", "give one of them")
        if not sysfs.is_dir():
            raise UsageError(f"--sysfs {sysfs}: no such folder", "name one with sys/devices/system inside")
    machine = Machine.load(source if sysfs is None else f"{sysfs}/")
    if as_json:
        sys.stdout.write(machine.to_json().decode())
        return
    from numaplan.mapper.draw import show_machine

    show_machine(machine)


def show_command(plan: PlanFile, debug: Debug = False) -> None:
    """Show a plan: the threads on each node, the memory, what it should cost.

    Example: nmap show plan.json
    """
    from numaplan.mapper.draw import show_plan
    from numaplan.mapper.plan import Plan

    show_plan(Plan.load(plan))


def diff_command(
    first: PlanFile,
    second: Annotated[Path, typer.Argument(metavar="PLAN2", help="The plan to compare with it.")],
    debug: Debug = False,
) -> None:
    """Show what differs between two plans: threads and memory that move, and the costs.

    Example: nmap diff old.json new.json
    """
    from numaplan.mapper.plan import Plan
    from numaplan.mapper.plan_diff import differences

    lines = differences(Plan.load(first), Plan.load(second))
    print("\n".join(lines) if lines else "the plans place everything alike")


def export_command(
    plan: PlanFile,
    form: Annotated[
        str,
        typer.Option(
            "--format", help="omp, gomp, kmp, rankfile, slurm, taskset, numactl or hwloc.", show_default=False
        ),
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to a file.")] = None,
    debug: Debug = False,
) -> None:
    """Write a plan's thread placement in the language of another launcher.

    Example: eval "$(nmap export plan.json --format omp)"
    """
    from numaplan.common import write_document
    from numaplan.mapper.export import export_plan
    from numaplan.mapper.plan import Plan

    text = export_plan(Plan.load(plan), form)
    if output is None:
        sys.stdout.write(text)
    else:
        write_document(output, text.encode())


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("machine")(machine_command)
    app.command("show")(show_command)
    app.command("diff")(diff_command)
    app.command("export")(export_command)
