"""An analysis on a terminal: a heat map of communication, loads, phases, regions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from numaplan.common import make_console, print_point

from ..analyzed import Analysis
from ..communication.side_by_side import SideBySide
from ..memory.regions import RegionUse
from .advice import Advised, show_advice
from .document import phase_times
from .units import in_count, in_time, use_cells

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

MOST_CELLS = 64  # threads that the heat map shows one by one
MOST_ROWS = 16
NONE = Advised()
SHADES = " ░▒▓█"


def show_analysis(
    analysis: Analysis,
    regions: Sequence[RegionUse],
    sentences: Sequence[str],
    advised: Advised = NONE,
) -> None:
    """Print it, in the width that the terminal has."""
    console = make_console()
    count = len(analysis.threads)
    console.print(
        f"{count:,} thread{'s' * (count != 1)}, {_some(analysis.samples, 'sample')}, "
        f"{_some(analysis.events, 'communication event')}, confidence {analysis.confidence:.2f}",
        style="bold",
    )
    for sentence in sentences:
        print_point(console, "  • ", sentence)
    for note in analysis.notes:
        print_point(console, "  ! ", note, style="yellow")
    show_advice(console, advised)
    if analysis.pairs.total():
        console.print("\nCommunication", style="bold", end=" ")
        console.print("(rows and columns: threads; darker is more)")
        for line in heat_map(analysis.pairs, console.width, console.encoding.lower().startswith("utf")):
            console.print(line)
    _show_threads(console, analysis)
    _show_phases(console, analysis)
    _show_regions(console, analysis, regions)


def _some(count: int, what: str) -> str:
    return f"{in_count(count)} {what}{'s' * (count != 1)}"


def heat_map(comm: SideBySide, width: int, unicode: bool) -> "list[Text]":
    """One line a thread, two characters a pair; where the width is too small, several threads share them."""
    from rich.text import Text

    label = len(str(comm.count - 1))
    cells = comm.cells(max(1, min(MOST_CELLS, (width - label - 1) // 2)))
    share = np.sqrt(cells / cells.max())
    lines = []
    bundle = -(-comm.count // len(cells))
    for number, row in enumerate(share.tolist()):
        line = Text(f"{number * bundle:>{label}} ")
        for value in row:
            level = round(value * (len(SHADES) - 1))
            shade = SHADES[level] if unicode else " .:*#"[level]
            line.append(shade * 2, style=f"rgb({60 + int(150 * value)},{110 + int(60 * value)},{200})")
        lines.append(line)
    return lines


def _show_threads(console: "Console", analysis: Analysis) -> None:
    from rich.table import Table

    unit = "misses of the last cache" if analysis.load_source == "dram" else "all accesses"
    table = Table(title=f"Load per thread ({unit}, in samples)", title_justify="left", box=None)
    for name in ("thread", "name", "load", "", "samples"):
        table.add_column(name, justify="right" if name in ("load", "samples") else "left")
    most = float(analysis.loads.max(initial=0.0)) or 1.0
    rows = list(zip(analysis.names, analysis.threads, analysis.loads.tolist(), strict=True))
    for path, thread, load in rows[:MOST_ROWS]:
        bar = "█" * round(24 * load / most)
        table.add_row(path, thread.name, in_count(load), bar, in_count(thread.samples))
    console.print()
    console.print(table)
    _show_rest(console, len(analysis.threads) - MOST_ROWS, "threads")


def _show_phases(console: "Console", analysis: Analysis) -> None:
    from rich.table import Table

    if len(analysis.phases) < 2:
        return
    table = Table(title="Phases", title_justify="left", box=None)
    in_accesses = analysis.timeline.in_accesses
    bounds = ("from access", "to access") if in_accesses else ("from", "to")
    for name in ("phase", *bounds, "accesses a slice"):
        table.add_column(name, justify="right")
    listed = list(zip(analysis.phases, phase_times(analysis), strict=True))[:MOST_ROWS]
    for number, (phase, (start, end)) in enumerate(listed, 1):
        times = [f"{at:,}" if in_accesses else in_time(at) for at in (start, end)]
        table.add_row(str(number), *times, f"{phase.weight:.1f}")
    console.print()
    console.print(table)
    _show_rest(console, len(analysis.phases) - MOST_ROWS, "phases")


def _show_regions(console: "Console", analysis: Analysis, regions: Sequence[RegionUse]) -> None:
    from rich.table import Table

    if not regions:
        return
    table = Table(title="Memory", title_justify="left", box=None)
    for name in ("region", "size", "samples", "threads", "writers", "first", "most by"):
        table.add_column(name, justify="left" if name == "region" else "right", overflow="fold")
    total = sum(use.samples for use in regions)
    shown = [use for use in regions if use.samples * 1000 >= total][:MOST_ROWS]
    for use in shown:
        table.add_row(use.title, *use_cells(use, analysis))
    console.print()
    console.print(table)
    _show_rest(console, len(regions) - len(shown), "regions")


def _show_rest(console: "Console", left: int, what: str) -> None:
    if left > 0:
        console.print(f"… {left} more {what}: see --json or nmap report", style="dim")
