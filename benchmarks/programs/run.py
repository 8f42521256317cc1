"""`python -m benchmarks programs`: measure what is missing, then show the table of what there is."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from numaplan.common import NumaplanError, UsageError
from numaplan.machine import Machine

from .measuring import BESIDE_PLAN, Place, measure
from .page import write_page
from .program import Program
from .programs import PROGRAMS
from .rows import Row, read_row
from .tables import not_counted, tables, verdict_line
from .verdicts import over_best, verdicts

MACHINES = "2x8,4x4"


class Wanted(msgspec.Struct, frozen=True):
    """What to measure; only, machines, configs: names by comma, nothing for the usual ones.

    runs: at least so many of each configuration are counted.
    """

    only: str = ""
    machines: str = MACHINES
    keep: Path | None = None
    count: bool = True
    configs: str = ""
    runs: int = 1
    json: bool = False
    page: Path | None = None


def run_programs(wanted: Wanted) -> None:
    """Record, plan and count what is missing, a program after another, and show what there is.

    A program that fails is told of in the table; the others go on.
    """
    chosen = _chosen(wanted.only)
    machines = _parts(wanted.machines or MACHINES)
    for machine in machines:
        Machine.load(machine)  # tell of what is wrong before an hour of work
    if wanted.keep is not None and not wanted.keep.is_dir():
        raise UsageError(f"--keep {wanted.keep}: no such folder", "make it, or name another")
    with tempfile.TemporaryDirectory() as temporary:
        folder = (wanted.keep or Path(temporary)).resolve()
        places = [(program, machine) for machine in machines for program in chosen]
        for program, machine in places:
            _measure(program, folder, machine, wanted)
        rows = [read_row(program, folder, machine) for program, machine in places]
    if wanted.page is not None:
        write_page(wanted.page, rows)
    if wanted.json:
        print(msgspec.json.encode(_document(rows)).decode())
    else:
        _show(rows)


def _measure(program: Program, folder: Path, machine: str, wanted: Wanted) -> None:
    print(f"programs: {program.name} on {machine}", file=sys.stderr, flush=True)
    failed = Place(folder / program.name, machine).failed
    failed.parent.mkdir(parents=True, exist_ok=True)
    try:
        configs = _parts(wanted.configs) or BESIDE_PLAN
        measure(program, folder, machine, runs=wanted.runs if wanted.count else 0, configs=configs)
        failed.unlink(missing_ok=True)
    except NumaplanError as error:
        said = str(error).replace(f"{failed.parent}/", "")  # the page names no folder of this machine
        print(f"programs: {program.name} on {machine}: {said}", file=sys.stderr, flush=True)
        failed.write_text(f"{said}\n")


def _chosen(only: str) -> Sequence[Program]:
    known = {program.name: program for program in PROGRAMS}
    names = _parts(only) or list(known)
    if unknown := sorted(set(names) - set(known)):
        raise UsageError(f"no program {unknown[0]!r}", f"choose from {', '.join(known)}")
    return [known[name] for name in names]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _document(rows: Sequence[Row]) -> dict[str, object]:
    return {
        "schema": "numaplan/benchmarks/1",
        "programs": [{**msgspec.to_builtins(row), "plan_over_best": over_best(row)} for row in rows],
        "verdicts": [msgspec.to_builtins(verdict) for verdict in verdicts(rows)],
    }


def _show(rows: Sequence[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for shown in tables(rows):
        table = Table(*shown.head, title=shown.title, title_justify="left", box=None, padding=(0, 1))
        for line in shown.lines:
            table.add_row(*line)
        console.print(table, highlight=False)
    for text in [*map(verdict_line, verdicts(rows)), *not_counted(rows)]:
        console.print(text, highlight=False, markup=False)
