"""The command `nprof`: record a program, look at what was recorded, hand it on."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from numaplan.common import UsageError, write_document
from numaplan.common.cli import PASS_THROUGH, Debug, Json, new_app, run_app
from numaplan.profiler.show import terminal_progress

if TYPE_CHECKING:
    from numaplan.profiler.series import RecordedRun

app = new_app(
    "Record which thread of a program touches which memory.\n\n"
    "Example: [bold]nprof record -o trace.db ./app[/bold], then [bold]nmap plan trace.db[/bold]."
)

TraceFile = Annotated[Path, typer.Argument(metavar="TRACE", help="A trace.db that 'nprof record' wrote.")]


@app.command("record", context_settings=PASS_THROUGH)
def record_command(
    argv: Annotated[list[str], typer.Argument(metavar="APP", help="The program, and its arguments.")] = [],
    output: Annotated[Path, typer.Option("-o", "--output", help="The trace to write.")] = Path("trace.db"),
    backend: Annotated[
        str, typer.Option(help="auto, pebs, ibs, spe, faults or emulate; see 'nprof doctor'.")
    ] = "auto",
    period: Annotated[
        int | None, typer.Option(help="One sample in so many accesses (default 1000); 1 is all.", min=1)
    ] = None,
    machine: Annotated[str, typer.Option(help="The machine to emulate (see 'nmap machine').")] = "local",
    cache: Annotated[bool, typer.Option(help="Emulation: model the caches to tell levels.")] = True,
    freq: Annotated[int, typer.Option(help="Samples a second, instead of --period.", min=0)] = 0,
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="Record only so long (10s, 2m); APP runs on.")
    ] = "",
    pid: Annotated[
        list[str], typer.Option("--pid", "--attach", metavar="PID", help="Record running processes.")
    ] = [],
    all_cpus: Annotated[bool, typer.Option("--all-cpus", help="Record all that runs.")] = False,
    max_size: Annotated[str, typer.Option(metavar="SIZE", help="Stop when perf's file is so large.")] = "",
    events: Annotated[
        list[str], typer.Option("--events", metavar="EVENT", help="perf's events instead; may be repeated.")
    ] = [],
    phys: Annotated[bool, typer.Option("--phys", help="Record physical addresses (root).")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the command line, run nothing.")] = False,
    sysfs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --dry-run: a recorded tree of /sys and /proc.")
    ] = None,
    set_: Annotated[
        list[str],
        typer.Option("--set", metavar="KEY=VALUE", help="A setting below; may be repeated."),
    ] = [],
    multiprocess: Annotated[
        bool,
        typer.Option("--multiprocess", help="The ranks of an MPI job: alone, and each in its own trace."),
    ] = False,
    runs: Annotated[int, typer.Option(metavar="K", help="Record K runs: trace.1.db, trace.2.db, …")] = 1,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what was recorded as JSON.")
    ] = None,
    debug: Debug = False,
) -> int:
    """Run APP to its end and write a trace of its memory accesses.

    The program's output, input and exit code are its own. Ctrl-C keeps what was recorded.

    For --set with emulate: turn=1000 (accesses a turn), schedule=fair|free, seed=1, l1=32K:8, l2=1M:16,
    l3=32M:16 (SIZE:WAYS; default: the machine's), l3_inclusive=yes|no, drop_runtime=yes|no (samples of the
    loader and of thread runtimes); pebs: ldlat=3 (least latency of loads), llc=yes|no|all, stores=yes|no;
    ibs: l3missonly=no|yes; spe: min_latency=0.

    MPI: 'nprof record --multiprocess mpirun -n 4 ./app' puts all ranks into one trace;
    'mpirun -n 4 nprof record --multiprocess ./app' writes trace.r0.db, trace.r1.db, … for 'nmap plan'.

    Example: nprof record --period 1000 -o trace.db -- ./app -n 8
    """
    from numaplan.profiler.choices import read_choices
    from numaplan.profiler.recording import RecordOptions, command_line
    from numaplan.profiler.series import rank_of, record_runs, summary_document, with_part

    if freq and period:
        raise UsageError("--freq and --period", "give one of them")
    choices = read_choices(
        freq=freq,
        duration=duration,
        pids=pid,
        all_cpus=all_cpus,
        max_size=max_size,
        events=events,
        phys=phys,
    )
    rank = rank_of(os.environ) if multiprocess else None
    options = RecordOptions(
        output=output if rank is None else with_part(output, f"r{rank}"),
        backend=backend,
        period=period or 1000,
        machine=machine,
        backend_options={**_assignments(set_), **({} if cache else {"cache": "off"})},
        choices=choices,
        ranks_only=multiprocess,
    )
    if dry_run:
        print(shlex.join(command_line(argv, options, _tree(sysfs), _say_choice)))
        return 0
    if sysfs:
        raise UsageError("--sysfs without --dry-run: another machine's events cannot be recorded", "add it")
    recorded = record_runs(
        argv,
        options,
        runs,
        watch=terminal_progress,
        chosen=_say_choice,
        done=_say_run,
    )
    if len(recorded) < runs:
        _say(f"run {len(recorded)} ended with {recorded[-1].summary.exit_code}: no more are recorded")
    if summary:
        write_document(summary, msgspec.json.encode(summary_document(recorded)))
    return recorded[-1].summary.exit_code


@app.command("import")
def import_command(
    recordings: Annotated[
        list[str], typer.Argument(metavar="PERF.DATA", help="Recordings of one run; '-' reads from a pipe.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The trace to write.")] = Path("trace.db"),
    machine: Annotated[
        str, typer.Option(help="The machine recorded on; default: as the first file describes it.")
    ] = "",
    debug: Debug = False,
) -> None:
    """Make a trace of files that 'perf record -d' or 'perf mem record' wrote, here or elsewhere.

    Also packed with gzip or xz, and the folders of 'perf record --threads'.

    Example: nprof import perf.data -o trace.db
    """
    from numaplan.profiler.importing import import_recordings
    from numaplan.profiler.machine import Machine

    with terminal_progress() as progress:
        chosen = Machine.load(machine) if machine else None
        summary = import_recordings(recordings, output, machine=chosen, progress=progress)
    for warning in summary.warnings:
        _say(f"warning: {warning}")
    _say_summary(summary.samples, summary.threads, summary.losses, output)


@app.command("info")
def info_command(trace: TraceFile, as_json: Json = False, debug: Debug = False) -> None:
    """Show what a trace holds: program, machine, threads, samples per event and level, losses.

    Example: nprof info trace.db
    """
    from numaplan.profiler.info import describe
    from numaplan.profiler.trace import Trace

    with Trace.open(trace) as opened:
        facts = describe(opened)
    if as_json:
        print(msgspec.json.encode(facts).decode())
    else:
        from numaplan.profiler.show import show_info

        show_info(facts)


@app.command("export")
def export_command(
    trace: TraceFile,
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The folder to write into.")],
    debug: Debug = False,
) -> None:
    """Write every table of a trace as a Parquet file.

    Example: nprof export trace.db --to tables
    """
    from numaplan.profiler.info import export_parquet
    from numaplan.profiler.trace import Trace

    with Trace.open(trace) as opened:
        for path in export_parquet(opened, to):
            print(path)


@app.command("doctor")
def doctor_command(
    sysfs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A recorded tree of /sys and /proc to judge by.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Say what this machine can record, and the exact command that mends each lack.

    Example: nprof doctor
    """
    from numaplan.profiler.doctor import diagnose
    from numaplan.profiler.machine import Machine

    tree = _tree(sysfs)
    checks = diagnose(Machine.load(str(tree) if tree else "local"), tree)
    if as_json:
        content = {"schema": "numaplan/doctor/1", "checks": [msgspec.to_builtins(check) for check in checks]}
        print(msgspec.json.encode(content).decode())
    else:
        from numaplan.profiler.show import show_checks

        show_checks(checks)


def _tree(folder: Path | None) -> Path | None:
    if folder is not None and not (folder / "sys").is_dir():
        raise UsageError(f"{folder}: no folder 'sys' in it", "give the root of a recorded tree")
    return folder


def _assignments(words: list[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for (key, equals, _), word in zip(pairs, words, strict=True):
        if not key or not equals:
            raise UsageError(f"--set {word}", "give KEY=VALUE")
    return {key: value for key, _, value in pairs}


def _say(text: str) -> None:
    print(f"nprof: {text}", file=sys.stderr)


def _say_summary(samples: int, threads: int, losses: int, output: Path) -> None:
    lost = f", {losses:,} lost" if losses else ""
    _say(f"{samples:,} samples of {threads} threads{lost} in {output}")
    from numaplan.profiler.aftermath import summarise

    for line in summarise(output):
        _say(line)


def _say_run(run: "RecordedRun") -> None:
    _say_summary(run.summary.samples, run.summary.threads, run.summary.losses, run.trace)


def _say_choice(backend: str, why: str) -> None:
    _say(f"recording with {backend}: {why}")


def main() -> None:
    """Entry point of `nprof`."""
    sys.exit(run_app(app, "nprof"))
