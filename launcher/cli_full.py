"""`nlaunch` with all its options, its help, and what it says to misuse; see cli.py."""

import sys
from typing import Annotated

import typer

from numaplan.common import UsageError
from numaplan.common.cli import Debug, Version, new_command, run_app
from numaplan.launcher.online.command import OnlineWords, run_online

ONLINE = "Online refinement (see docs/online.md)"

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
        "With --online a policy keeps refining the placement while the program runs; with --attach that of"
        " processes that run already.",
        "Example: nlaunch --plan plan.json --report applied.json ./app 1000",
        "Example: nlaunch --online nimar+lmma ./app 1000",
    )
)


def nlaunch(
    command: Annotated[
        list[str] | None, typer.Argument(help="The program and its arguments.", metavar="APP [ARGS]...")
    ] = None,
    plan: Annotated[str, typer.Option(help="The plan ('nmap plan' makes it).", metavar="PLAN.JSON")] = "",
    report: Annotated[
        str, typer.Option(help="Write what was applied; %r is the rank of a job.", metavar="APPLIED.JSON")
    ] = "",
    remap: Annotated[
        bool, typer.Option("--remap", help="Fit a plan for another machine to this one.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 when something is not as planned.")
    ] = False,
    unplanned: Annotated[
        str, typer.Option(help="Threads not in the plan: float (their process's nodes), anywhere, inherit.")
    ] = "float",
    override: Annotated[
        bool,
        typer.Option(
            "--override/--respect-app", help="The plan holds where the program sets its own affinity."
        ),
    ] = False,
    by: Annotated[
        str,
        typer.Option(
            help="How threads are bound: preload (a library in the program), ptrace (from outside), auto."
        ),
    ] = "auto",
    watch: Annotated[
        float, typer.Option(help="Look every so many seconds if all is as planned; 0: only at the end.")
    ] = 0.0,
    match: Annotated[
        bool, typer.Option("--match", help="Bind threads by the roles that they are seen to play.")
    ] = False,
    match_trace: Annotated[
        str, typer.Option(help="The plan's trace, by which roles are told better.", metavar="TRACE.DB")
    ] = "",
    match_seconds: Annotated[float, typer.Option(help="Watch so long before threads are matched.")] = 2.0,
    online: Annotated[
        str,
        typer.Option(
            help="Keep refining while it runs: nimar, cimar, lmma, nimar+lmma, cimar+lmma, dino, di-plain,"
            " di-migrate, first-fit, tm, mb, bce, mb+, excl-base, excl, numaplan; each also +next-touch.",
            metavar="POLICY",
            rich_help_panel=ONLINE,
        ),
    ] = "",
    attach: Annotated[
        list[str] | None,
        typer.Option(help="Refine running processes.", metavar="PID[,PID]...", rich_help_panel=ONLINE),
    ] = None,
    all_mine: Annotated[
        bool, typer.Option("--all-mine", help="Refine all processes of this user.", rich_help_panel=ONLINE)
    ] = False,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A parameter of the policy.", metavar="NAME=VALUE", rich_help_panel=ONLINE
        ),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            help="Thread moves and MB of pages a second at most (moves=8,mb=256).", rich_help_panel=ONLINE
        ),
    ] = "",
    overhead: Annotated[
        float, typer.Option(help="Share of all cpus' time that looking may take.", rich_help_panel=ONLINE)
    ] = 0.01,
    sampler: Annotated[
        str,
        typer.Option(help="Where samples come from: auto, lab, pebs, ibs, faults.", rich_help_panel=ONLINE),
    ] = "auto",
    journal: Annotated[
        str,
        typer.Option(
            help="Append what was seen, done and undone, and why.",
            metavar="JOURNAL.JSONL",
            rich_help_panel=ONLINE,
        ),
    ] = "",
    save: Annotated[
        str,
        typer.Option(
            help="Write the refined placement as a plan.", metavar="PLAN.JSON", rich_help_panel=ONLINE
        ),
    ] = "",
    explain: Annotated[bool, typer.Option("--explain", help="Say what would be done; run nothing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary, no warning.")] = False,
    debug: Debug = False,
    version: Version = False,
) -> int:
    """Parse, launch, pass the exit code on."""
    command = command or []
    words = OnlineWords(
        online,
        tuple(attach or ()),
        all_mine,
        tuple(setting or ()),
        budget,
        overhead,
        sampler,
        journal,
        save,
        quiet,
    )
    if words.given and (attach or all_mine or not plan):
        return run_online(words, command)
    if not plan:
        raise UsageError("no plan given", "say --plan plan.json ('nmap plan' makes one), or --online POLICY")
    from numaplan.launcher.launch import BY, UNPLANNED, LaunchRequest, check, launch_program

    for option, value, choices in (("--unplanned", unplanned, UNPLANNED), ("--by", by, BY)):
        if value not in choices:
            raise UsageError(f"{option} {value}: no such choice", f"one of {', '.join(choices)}")
    for option, seconds in (("--watch", watch), ("--match-seconds", match_seconds)):
        if not 0 <= seconds < 1e6:
            raise UsageError(f"{option} {seconds:g}: not a number of seconds", "give 0 or more")
    request = LaunchRequest(
        command,
        plan,
        report,
        remap,
        strict,
        unplanned,
        quiet,
        by=by,
        override=override,
        watch=watch,
        match=match or bool(match_trace),
        match_seconds=match_seconds,
        match_trace=match_trace,
        online=words.options() if online else None,
    )
    if not explain:
        return launch_program(request)
    from numaplan.launcher.explain import explain as describe

    print(describe(check(request)))
    return 0


app = new_command(
    nlaunch,
    help=HELP,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False},
)


def main() -> None:
    """Read the command line as a whole."""
    sys.exit(run_app(app, "nlaunch"))
