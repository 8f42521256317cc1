"""The command `nprof`: record a program, look at what was recorded, hand it on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from numaplan.common.cli import PASS_THROUGH, Debug, Json, new_app, run_app
from numaplan.profiler.backends.base import Progress

app = new_app(
    "Record which thread of a program touches which memory.\n\n"
    "Example: [bold]nprof record -o trace.db ./app[/bold], then [bold]nmap plan trace.db[/bold]."
)

TraceFile = Annotated[Path, typer.Argument(metavar="TRACE", help="A trace.db that 'nprof record' wrote.")]


@app.command("record", context_settings=PASS_THROUGH)
def record_command(
    argv: Annotated[list[str], typer.Argument(metavar="APP", help="The program, and its arguments.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The trace to write.")] = Path("trace.db"),
    backend: Annotated[str, typer.Option(help="auto, faults or emulate; see 'nprof doctor'.")] = "auto",
    period: Annotated[int, typer.Option(help="One sample in so many accesses; 1 is all.", min=1)] = 1000,
    machine: Annotated[str, typer.Option(help="The machine to emulate (see 'nmap machine').")] = "local",
    cache: Annotated[bool, typer.Option(help="Emulation: model the caches to tell levels.")] = True,
    set_: Annotated[
        list[str],
        typer.Option("--set", metavar="KEY=VALUE", help="Emulation: an option below; may be repeated."),
    ] = [],
    debug: Debug = False,
) -> int:
    """Run APP to its end and write a trace of its memory accesses.

    The program's output, input and exit code are its own. Ctrl-C keeps what was recorded.

    For --set: turn=1000 (accesses a turn), schedule=fair|free, seed=1, l1=32K:8, l2=1M:16, l3=32M:16
    (SIZE:WAYS), drop_runtime=yes|no (samples of the loader and of thread runtimes).

    Example: nprof record --period 1000 -o trace.db -- ./app -n 8
    """
    from numaplan.profiler.recording import RecordOptions, record

    options = RecordOptions(
        output=output,
        backend=backend,
        period=period,
        machine=machine,
        backend_options={**_assignments(set_), **({} if cache else {"cache": "off"})},
    )
    with _progress() as progress:
        summary = record(argv, options, progress=progress, chosen=_say_choice)
    _say_summary(summary.samples, summary.threads, summary.losses, output)
    return summary.exit_code


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

    with _progress() as progress:
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
        import msgspec

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
def doctor_command(as_json: Json = False, debug: Debug = False) -> None:
    """Say what this machine can record, and the exact command that mends each lack.

    Example: nprof doctor
    """
    from numaplan.profiler.doctor import diagnose
    from numaplan.profiler.machine import Machine

    checks = diagnose(Machine.load("local"))
    if as_json:
        import msgspec

        content = {"schema": "numaplan/doctor/1", "checks": [msgspec.to_builtins(check) for check in checks]}
        print(msgspec.json.encode(content).decode())
    else:
        from numaplan.profiler.show import show_checks

        show_checks(checks)


def _assignments(words: list[str]) -> dict[str, str]:
    from numaplan.common import UsageError

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


def _say_choice(backend: str, why: str) -> None:
    _say(f"recording with {backend}: {why}")


@contextmanager
def _progress() -> Iterator[Progress]:
    """A progress bar on a terminal's stderr; it shows only after the program has ended."""
    if not sys.stderr.isatty():
        yield lambda _what, _share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None, visible=False)

        def advance(what: str, share: float) -> None:
            total = None if share < 0 else 1.0
            bar.update(task, description=what, total=total, completed=max(share, 0.0), visible=True)

        yield advance


def main() -> None:
    """Entry point of `nprof`."""
    sys.exit(run_app(app, "nprof"))
