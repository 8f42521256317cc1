"""What lines of code cost, on a terminal and as a document."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from numaplan.common import make_console
from numaplan.profiler import Trace

from ..memory.line_costs import LineCost
from ..memory.regions import RegionUse
from .units import in_count

MOST_ROWS = 16
_DETAILS = re.compile(r" \(.*\)")  # of a region: its type and size
_COLUMNS = ("samples", "writes", "missed", "remote", "foreign", "transfers")


def region_titles(trace: Trace, regions: Sequence[RegionUse]) -> dict[int, str]:
    """What every region of a trace is called where people read; regions: those of which more is known."""
    every = {row.region: f"{row.kind} {row.name}" for row in trace.region_rows}
    return every | {use.region: use.title for use in regions}


def lines_document(costs: Sequence[LineCost], titles: Mapping[int, str]) -> dict[str, Any]:
    """Key `lines`: what each line of code costs, in samples, and in which regions; titles: of regions."""
    return {
        "lines": [
            {
                "path": cost.path,
                "line": cost.line,
                "function": cost.function,
                **{name: getattr(cost, name) for name in _COLUMNS},
                "regions": [
                    {"region": region, "title": titles[region], "samples": samples}
                    for region, samples in sorted(cost.regions.items(), key=lambda item: (-item[1], item[0]))
                    if region in titles
                ],
            }
            for cost in costs
        ]
    }


def show_lines(costs: Sequence[LineCost], titles: Mapping[int, str]) -> None:
    """Print the lines with the most transfers and remote and foreign accesses; titles: of regions."""
    from rich.table import Table

    console = make_console()
    table = Table(title="Lines of code", title_justify="left", box=None)
    for name in ("line", *_COLUMNS, "mostly on"):
        table.add_column(name, justify="right" if name in _COLUMNS else "left", overflow="fold")
    for cost in costs[:MOST_ROWS]:
        counts = (in_count(getattr(cost, name)) for name in _COLUMNS)
        known = {region: samples for region, samples in cost.regions.items() if region in titles}
        mostly = titles[max(known, key=lambda region: (known[region], -region))] if known else "–"
        table.add_row(cost.title, *counts, _DETAILS.sub("", mostly))
    console.print()
    console.print(table)
    if len(costs) > MOST_ROWS:
        console.print(f"… {len(costs) - MOST_ROWS} more lines: see --json", style="dim")
    about = (
        "missed: answered by no cache; remote: by memory or a cache of another node, where that was seen; "
        "foreign: in pages that another thread touched first; transfers: of a cache line that another thread "
        "wrote last"
    )
    console.print(about, style="dim")
