"""`nmap compare`: every method's costs on one workload, in one table."""

from typing import Annotated

import typer

from numaplan.common.cli import Debug, Json
from numaplan.mapper.cli_plan import (
    Comm,
    Effort,
    Loads,
    MachineName,
    Phases,
    Seed,
    Symmetrise,
    TraceFile,
)


def compare_command(
    trace: TraceFile = None,
    comm: Comm = None,
    loads: Loads = None,
    machine: MachineName = None,
    phases: Phases = None,
    symmetrise: Symmetrise = False,
    methods: Annotated[str, typer.Option(help="all, or names separated by commas.")] = "all",
    objective: Annotated[str, typer.Option(help="balanced, remote, hop, phased or all.")] = "all",
    seed: Seed = 0,
    effort: Effort = "normal",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what every method's placement costs: communication, distance, load, time.

    Example: nmap compare trace.db --machine 4x2
    """
    from numaplan.mapper.compare import chosen_methods, compare, to_document
    from numaplan.mapper.inputs import read_input, say

    chosen_methods(methods)  # known, before a large trace is read
    given, by_phase = [trace] if trace else None, objective == "phased"
    workload, target = read_input(
        given, comm, loads, machine, pages=False, phases=phases, by_phase=by_phase, symmetrise=symmetrise
    )
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
