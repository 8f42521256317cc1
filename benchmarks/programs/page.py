"""The page of results in the docs, made from the rows."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from numaplan.common import atomic_output, version

from .programs import PROGRAMS
from .rows import Row
from .tables import markdown
from .verdicts import verdicts

_TEMPLATE = Path(__file__).with_name("page.md")


def write_page(path: Path, rows: Sequence[Row]) -> None:
    """Write the page anew."""
    known = [f"| {program.name} | {program.kind} | `{_words(program.argv)}` |" for program in PROGRAMS]
    programs = "\n".join(["| program | kind | command |", "|---|---|---|", *known])
    text = _TEMPLATE.read_text(encoding="utf-8").format(
        date=date.today().isoformat(),
        version=version(),
        programs=programs,
        tables=markdown(rows, verdicts(rows)),
    )
    with atomic_output(path) as output:
        output.write_text(text, encoding="utf-8")


def _words(argv: str) -> str:
    return argv.replace("{sources}/", "").replace("{build}/", "").replace("{threads}", "N")
