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
_VERDICTS = ("size", "direction", "no", "not measured")
_STYLE = """:root{color-scheme:light dark;--ink:#1d2126;--soft:#5c6670;--line:#dde1e6;--paper:#fff;
--size:#1f6f43;--direction:#7a5b0d;--no:#a32d20}
@media(prefers-color-scheme:dark){:root{--ink:#e4e7eb;--soft:#9aa5b1;--line:#343a42;--paper:#15181c;
--size:#6fce9a;--direction:#e0b94f;--no:#f08a7c}}
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:78rem;padding:0 1rem;color:var(--ink);
background:var(--paper)}
h1{font-size:1.6rem;margin:0 0 .5rem}h2{font-size:1.2rem;margin:2.2rem 0 .5rem}p{max-width:60rem}
table{border-collapse:collapse}th,td{padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line);
text-align:left;vertical-align:top}th{color:var(--soft);font-weight:600;border-bottom-width:2px}
td.n{font-variant-numeric:tabular-nums;white-space:nowrap}.counts .n{text-align:right}
.i,.not,.rows td:last-child{color:var(--soft)}.v{font-weight:600;white-space:nowrap}
.size{color:var(--size)}.direction{color:var(--direction)}.no{color:var(--no)}.rows{width:100%}
@media(min-width:45.01rem){.rows{table-layout:fixed}.rows th:nth-child(1){width:8%}
.rows th:nth-child(2){width:24%}
.rows th:nth-child(3){width:12%}.rows th:nth-child(4){width:16%}.rows th:nth-child(5){width:5%}
.rows th:nth-child(6){width:9%}}
@media(max-width:45rem){.counts{width:100%}.rows,.rows tbody,.rows tr{display:block}
.rows tr:first-child{display:none}
.rows tr{border-bottom:1px solid var(--line);padding:.6rem 0}.rows td{border:0;padding:0 .6rem 0 0;
display:inline}.rows td:nth-child(2){display:block;font-weight:500}
.rows td:first-child,.rows td:last-child{display:block;font-size:.9em}
.rows td:empty{display:none}.rows td[data-l]::before{content:attr(data-l) " ";color:var(--soft)}}"""
_LEGEND = """fewer where it says so, with 95 % intervals. <b class=size>size</b>: agrees in size;
<b class=direction>direction</b>: only in direction, or the claim holds; <b class=no>no</b>: neither;
<b class=not>not measured</b>: needs what this machine lacks. One calibration a machine, none a row."""


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
    value, spread = _parts(row)
    return f"{value} {spread}".rstrip()


def _parts(row: Row) -> tuple[str, str]:
    if row.value is None:
        return "–", ""
    return f"{row.value:g}", f"[{row.low:g}, {row.high:g}]" if row.low != row.high else ""


def verdict(row: Row) -> str:
    """As it is shown: what could not be measured is no disagreement."""
    return row.verdict if row.value is not None else "not measured"


def _print(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    columns = ("paper", "table", "row", "paper says", "ours", "seeds", "agrees in", "why")
    table = Table(*columns, box=None, padding=(0, 1))
    for row in (row for paper in papers(rows) for row in rows if row.paper == paper):
        cells = (_said(row), number(row), str(row.seeds or ""), verdict(row), row.why)
        table.add_row(row.paper, row.table, row.row, *cells)
    Console().print(table, highlight=False)


def _said(row: Row) -> str:
    return row.paper_value if isinstance(row.paper_value, str) else f"{row.paper_value:.4g}"


def page(rows: list[Row], seeds: int) -> str:
    """One HTML page without scripts or anything from elsewhere."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width,initial-scale=1'>",
        f"<title>Five papers, reproduced</title><style>{_STYLE}</style><h1>Five papers, reproduced</h1>",
        f"<p>Means over {seeds} seeds, {_LEGEND}</p>",
        _counts(rows),
    ]
    for paper in papers(rows):
        head = "<tr><th>table<th>row<th>paper<th>ours<th>seeds<th>agrees in<th>why"
        parts.append(f"<h2>{escape(paper)}</h2><table class=rows>{head}")
        parts.extend(_html_row(row) for row in rows if row.paper == paper)
        parts.append("</table>")
    return "\n".join([*parts, "</html>\n"])


def papers(rows: list[Row]) -> list[str]:
    """In the order of their rows, our own last."""
    names = list(dict.fromkeys(row.paper for row in rows))
    return sorted(names, key=lambda name: name == "ours")


def _counts(rows: list[Row]) -> str:
    """How many rows of each paper agree in what."""
    lines = ["<table class=counts><tr><th>paper" + "".join(f"<th class=n>{each}" for each in _VERDICTS)]
    for paper in papers(rows):
        found = [verdict(row) for row in rows if row.paper == paper]
        numbers = "".join(f"<td class=n>{found.count(each)}" for each in _VERDICTS)
        lines.append(f"<tr><td>{escape(paper)}{numbers}")
    return "\n".join([*lines, "</table>"])


def _html_row(row: Row) -> str:
    (value, spread), said = _parts(row), verdict(row)
    cells = [
        f"<td class=i>{escape(row.table)}<td>{escape(row.row)}<td data-l=paper:>{escape(_said(row))}",
        f"<td data-l=ours: class=n>{value} <span class=i>{spread}</span>",
        f"<td data-l=seeds: class=n>{row.seeds}" if row.seeds else "<td>",
        f"<td class='v {said.split()[0]}'>{said}<td>{escape(row.why)}",
    ]
    return "<tr>" + "".join(cells)
