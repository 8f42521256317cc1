"""`nlaunch`: run a program with its plan."""

import sys
from typing import Annotated

import typer

from numaplan.common import UsageError
from numaplan.common.cli import Debug, Version, new_command, run_app

HELP = "\n\n".join(  # a paragraph each: the help is wrapped to the terminal
    (
        "Run a program with its plan, and say what was applied.",
        "Each thread is bound before its first instruction, planned memory is placed before it is first"
        " touched; at the end the threads' cpus and the pages' nodes are looked up and compared with the"
        " plan. The program's output, input, signals and exit code (128+signal when it died of one) are its"
        " own.",
        "Exit codes of nlaunch itself: 1 with --strict when something is not as planned, 2 for misuse, no"
        " such program, or a plan that cannot be read or is for another machine, 3 when the machine lacks"
        " something.",
        "Example: nlaunch --plan plan.json --report applied.json ./app 1000",
    )
)


def nlaunch(
    command: Annotated[
        list[str], typer.Argument(help="The program and its arguments.", metavar="APP [ARGS]...")
    ],
    plan: Annotated[str, typer.Option(help="The plan ('nmap plan' makes it).", metavar="PLAN.JSON")],
    report: Annotated[str, typer.Option(help="Write what was applied.", metavar="APPLIED.JSON")] = "",
    remap: Annotated[
        bool, typer.Option("--remap", help="Fit a plan for another machine to this one.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 when something is not as planned.")
    ] = False,
    unplanned: Annotated[
        str, typer.Option(help="Threads not in the plan: float (their process's nodes), anywhere, inherit.")
    ] = "float",
    explain: Annotated[bool, typer.Option("--explain", help="Say what would be done; run nothing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary, no warning.")] = False,
    debug: Debug = False,
    version: Version = False,
) -> int:
    """Parse, launch, pass the exit code on."""
    from numaplan.launcher.launch import UNPLANNED, LaunchRequest, launch_program, plan_for

    if unplanned not in UNPLANNED:
        raise UsageError(f"--unplanned {unplanned}: no such choice", f"one of {', '.join(UNPLANNED)}")
    request = LaunchRequest(command, plan, report, remap, strict, unplanned, quiet)
    if not explain:
        return launch_program(request)
    from numaplan.common.process import find_program
    from numaplan.launcher.explain import explain as describe
    from numaplan.profiler.machine import Machine

    find_program(command)
    print(describe(plan_for(request, Machine.load("local")), command))
    return 0


app = new_command(
    nlaunch,
    help=HELP,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False},
)


def main() -> None:
    """Entry point of the command."""
    sys.exit(run_app(app, "nlaunch"))
