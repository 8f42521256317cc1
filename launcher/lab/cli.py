"""`nlab`: run programs on a virtual NUMA machine and count every local and remote access."""

import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from numaplan.common import MachineLacksError, UsageError, reviewable_json, write_document
from numaplan.common.cli import PASS_THROUGH, new_app, run_app
from numaplan.launcher.lab.session import Request

app = new_app(
    "Boot a real kernel with as many NUMA nodes as asked for, run a program in it, and count which cpu "
    "touched memory of which node. No NUMA hardware, no root and no /dev/kvm needed.\n\n"
    "Example: nlab setup && nlab run --machine 4x2 -- ./app"
)

Command = Annotated[list[str], typer.Argument(help="The program and its arguments.", metavar="APP [ARGS]...")]
MachineOption = Annotated[
    str, typer.Option("--machine", "-m", help="AxB (A nodes of B cpus), a built-in name, or a file.")
]
Scale = Annotated[
    str, typer.Option(help="Keep this much of the machine, and its distances.", metavar="NODESxCPUS")
]
CpusPerNode = Annotated[int, typer.Option(min=0, help="At most this many cpus a node (0: all).")]
Memory = Annotated[str, typer.Option(help="Memory of the whole guest (default 2G).", metavar="SIZE")]
Timeout = Annotated[float, typer.Option(min=0, help="Seconds a run may take (0: no limit).")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


@app.command()
def setup(
    deb: Annotated[list[Path] | None, typer.Option(help="Use this kernel package; fetch none.")] = None,
    renew: Annotated[bool, typer.Option("--renew", help="Fetch a kernel again.")] = False,
) -> None:
    """Fetch a Debian kernel into the user's cache folder, and QEMU if root and missing.

    Example: nlab setup
    """
    from numaplan.launcher.lab.fetch import set_up
    from numaplan.launcher.lab.places import cache_folder

    kernel = set_up(deb or [], renew, lambda text: print(f"nlab: {text}", file=sys.stderr))
    print(f"kernel {kernel.version} in {cache_folder()}")


@app.command()
def doctor(json: Json = False) -> None:
    """Say what the lab lacks here, and the command that mends it.

    Example: nlab doctor
    """
    from numaplan.launcher.lab.doctor import diagnose
    from numaplan.launcher.lab.show import show_diagnosis

    diagnosis = diagnose()
    if json:
        _print_json(diagnosis)
    else:
        show_diagnosis(diagnosis)
    if not diagnosis.ok:
        lacking = next(check for check in diagnosis.checks if not check.ok)
        raise MachineLacksError(f"{lacking.name}: {lacking.found}", lacking.mend)


@app.command(context_settings=PASS_THROUGH)
def run(
    command: Command,
    machine: MachineOption,
    scale: Scale = "",
    cpus_per_node: CpusPerNode = 0,
    memory: Memory = "",
    timeout: Timeout = 0,
    config: Annotated[str, typer.Option(help="How to place; see 'nlab compare --help'.")] = "",
    plan: Annotated[str, typer.Option(help="Run under nlaunch with this plan.", metavar="PLAN.JSON")] = "",
    online: Annotated[str, typer.Option(help="Run under nlaunch with this policy.", metavar="POLICY")] = "",
    by_thread: Annotated[bool, typer.Option("--by-thread", help="Also count each thread alone.")] = False,
    counts: Annotated[str, typer.Option(help="Write the counts here.", metavar="OUT.CSV")] = "",
    json: Json = False,
) -> int:
    """Run a program once and count its accesses by cpu and node.

    The program's output, input and exit code are its own (124 when --timeout ended it); the table goes to
    stderr. With --json the program's output goes to stderr.

    Example: nlab run --machine 4x2 -- ./app 1000
    """
    from numaplan.launcher.lab.configs import parse_configs
    from numaplan.launcher.lab.session import open_session
    from numaplan.launcher.lab.show import counts_csv, say, show_run

    name = config or ("plan" if plan else "online" if online else "default")
    parse_configs(name, plan, online)
    _check_outputs(counts)
    request = Request(command, machine, scale, cpus_per_node, memory, timeout, plan, online, by_thread)
    sys.stdout.flush()
    with open_session(request, say) as session:
        result = session.run(name, _stdin(), 2 if json else 1, 2)
    if counts:
        write_document(counts, counts_csv(result))
    if json:
        _print_json(result)
    else:
        show_run(result, sys.stderr)
    if result.timed_out:
        print(f"nlab: the program was ended after {timeout:g} s", file=sys.stderr)
    return result.exit_code


@app.command(context_settings=PASS_THROUGH)
def compare(
    command: Command,
    machine: MachineOption,
    configs: Annotated[str, typer.Option(help="Which, separated by commas.", metavar="NAMES")] = "",
    plan: Annotated[str, typer.Option(help="The plan of configuration 'plan'.", metavar="PLAN.JSON")] = "",
    online: Annotated[str, typer.Option(help="The policy of configuration 'online'.")] = "",
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Runs a configuration.")] = 3,
    scale: Scale = "",
    cpus_per_node: CpusPerNode = 0,
    memory: Memory = "",
    timeout: Timeout = 0,
    gate: Annotated[list[str] | None, typer.Option(help="Exit 1 unless this holds.", metavar="EXPR")] = None,
    junit: Annotated[str, typer.Option(help="Write the verdict for CI.", metavar="OUT.XML")] = "",
    html: Annotated[str, typer.Option(help="Write a page with the table and maps.", metavar="OUT.HTML")] = "",
    json: Json = False,
) -> None:
    """Run a program under several configurations in one boot and show their costs side by side.

    Configurations: default (the kernel places all, AutoNUMA on), no-autonuma, interleave, compact and
    scatter (threads bound in order), plan (nlaunch --plan), online (nlaunch --online). The program's own
    output is dropped.

    A gate compares medians: local_share, local, remote, hop_cost, mean_distance, traffic_imbalance, migrated,
    hint_faults, seconds.

    Example: nlab compare --machine 4x2 --plan plan.json --gate 'plan.remote <= 0.5 * default.remote' -- ./app
    """
    from numaplan.launcher.lab import comparing
    from numaplan.launcher.lab.export import html as html_page
    from numaplan.launcher.lab.export import junit as junit_suite
    from numaplan.launcher.lab.show import say, show_compare

    _check_outputs(junit, html)
    request = Request(command, machine, scale, cpus_per_node, memory, timeout, plan, online)
    result, verdicts = comparing.compare(request, configs, repeat, gate or [], say)
    if json:
        _print_json(result)
    else:
        show_compare(result, sys.stdout)
    if junit:
        write_document(junit, junit_suite(result, verdicts))
    if html:
        write_document(html, html_page(result, verdicts))
    comparing.raise_for(result, verdicts)


def _check_outputs(*paths: str) -> None:
    """What cannot be written should stop us before the runs, not after."""
    for path in filter(None, paths):
        if not Path(path).absolute().parent.is_dir():
            raise UsageError(f"{path}: no folder {Path(path).parent}", "create it first")
        if Path(path).is_dir():
            raise UsageError(f"{path}: is a folder", "name a file")


def _stdin() -> int:
    """Our standard input, or -1 where there is none to read: closed, or a terminal that is not ours now."""
    try:
        if os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp():
            return -1
        os.fstat(0)
    except OSError:
        return -1
    return 0


def _print_json(document: msgspec.Struct) -> None:
    print(reviewable_json(msgspec.to_builtins(document)).decode(), end="")


def main() -> None:
    """Entry point of the command."""
    sys.exit(run_app(app, "nlab"))
