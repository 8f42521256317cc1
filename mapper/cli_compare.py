"""`nmap compare`: every method's costs on one workload, in one table."""

from typing import Annotated

import typer

from numaplan.common.cli import Debug
from numaplan.mapper.cli_plan import Comm, Effort, Loads, MachineName, Seed, TraceFile, say


def compare_command(
    trace: TraceFile = None,
    comm: Comm = None,
    loads: Loads = None,
    machine: MachineName = None,
    methods: Annotated[str, typer.Option(help="all, or names separated by commas.")] = "all",
    objective: Annotated[str, typer.Option(help="balanced, remote, hop or all.")] = "all",
    seed: Seed = 0,
    effort: Effort = "normal",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Show what every method's placement costs: communication, distance, load, time.

    Example: nmap compare trace.db --machine 4x2
    """
    from numaplan.mapper.cli_plan import read_input
    from numaplan.mapper.compare import compare, to_document

    workload, target = read_input(trace, comm, loads, machine, pages=False)
    for note in workload.notes:
        say(note)
    rows = compare(workload, target, methods, objective, seed=seed, effort=effort)
    if as_json:
        print(to_document(rows))
        return
    from numaplan.mapper.draw import show_comparison

    show_comparison(rows)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare_command)
