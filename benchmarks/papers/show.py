"""All rows: as JSON, as a table for the terminal, as one HTML page."""

import os
import sys
from html import escape
from importlib import import_module
from pathlib import Path

from benchmarks.papers.measured import Study
from benchmarks.papers.rows import Row, as_json
from numaplan.common import UsageError, atomic_output

PAPERS = ("exclusivity", "cmlb", "next_touch", "dino", "cimar")
SEEDS = 20
_COLOURS = {"size": "#2f7d4f", "direction": "#8a6d1a", "no": "#a33a2c"}
_STYLE = """body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0
1rem;color:#222} table{border-collapse:collapse;width:100%}th,td{padding:.3rem .6rem;border-bottom:1px solid
#ddd;text-align:left} td.n{font-variant-numeric:tabular-nums}h2{margin-top:2rem}
@media(prefers-color-scheme:dark){body{background:#161616;color:#ddd}th,td{border-color:#333}}"""


def run_papers(*, json: bool, html: Path | None, seeds: int, keep: Path | None) -> None:
    """Reproduce and show; raises UsageError for fewer seeds than one, or folders that cannot be written."""
    if seeds < 1:
        raise UsageError(f"--seeds {seeds}", "give at least 1; intervals need 2")
    if html is not None and (html.is_dir() or not os.access(html.parent, os.W_OK)):  # before an hour of work
        raise UsageError(f"--html {html}: cannot be written", "name a file in a folder that can be written")
    if keep is not None and not (keep.is_dir() and os.access(keep, os.W_OK)):
        raise UsageError(f"--keep {keep}: cannot be written", "name a folder that is there")
    rows: list[Row] = []
    study = Study(seeds, keep)
    for name in PAPERS:
        print(f"papers: {name.replace('_', '-')}, {seeds} seeds", file=sys.stderr)
        rows += import_module(f"benchmarks.papers.{name}").rows(study)
    if html is not None:
        with atomic_output(html) as place:
            place.write_text(page(rows, seeds), encoding="utf-8")
    if json:
        print(as_json(rows, seeds).decode())
    else:
        _print(rows)


def number(row: Row) -> str:
    """The value with its interval."""
    if row.value is None:
        return "–"
    spread = f" [{row.low:g}, {row.high:g}]" if row.low is not None and row.low != row.high else ""
    return f"{row.value:g}{spread}"


def _print(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("paper", "table", "row", "paper says", "ours", "agrees in", "why", box=None, padding=(0, 1))
    for row in (row for paper in papers(rows) for row in rows if row.paper == paper):
        table.add_row(row.paper, row.table, row.row, _said(row), number(row), row.verdict, row.why)
    Console().print(table, highlight=False)


def _said(row: Row) -> str:
    return row.paper_value if isinstance(row.paper_value, str) else f"{row.paper_value:.4g}"


def page(rows: list[Row], seeds: int) -> str:
    """One HTML page without scripts or anything from elsewhere."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>Five papers, reproduced</title><style>{_STYLE}</style><h1>Five papers, reproduced</h1>",
        f"<p>Means over {seeds} seeds with 95 % intervals. <b>size</b>: agrees in size; ",
        "<b>direction</b>: only in direction, or the claim holds; <b>no</b>: neither. ",
        "One calibration a machine, none a row.</p>",
        _counts(rows),
    ]
    for paper in papers(rows):
        parts.append(
            f"<h2>{escape(paper)}</h2><table><tr><th>table<th>row<th>paper<th>ours<th>agrees in<th>why"
        )
        parts.extend(_html_row(row) for row in rows if row.paper == paper)
        parts.append("</table>")
    return "\n".join([*parts, "</html>\n"])


def papers(rows: list[Row]) -> list[str]:
    """In the order of their rows, our own last."""
    names = list(dict.fromkeys(row.paper for row in rows))
    return sorted(names, key=lambda name: name == "ours")


def _counts(rows: list[Row]) -> str:
    """How many rows of each paper agree in what."""
    lines = ["<table><tr><th>paper" + "".join(f"<th>{verdict}" for verdict in _COLOURS)]
    for paper in papers(rows):
        found = [row.verdict for row in rows if row.paper == paper]
        numbers = "".join(f"<td class=n>{found.count(verdict)}" for verdict in _COLOURS)
        lines.append(f"<tr><td>{escape(paper)}{numbers}")
    return "\n".join([*lines, "</table>"])


def _html_row(row: Row) -> str:
    cells = [escape(row.table), escape(row.row), escape(_said(row)), escape(number(row))]
    verdict = f"<td style='color:{_COLOURS[row.verdict]}'><b>{row.verdict}</b>"
    return "<tr>" + "".join(f"<td>{cell}" for cell in cells) + verdict + f"<td>{escape(row.why)}"
