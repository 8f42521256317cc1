"""The page's key figures, lists and tables as HTML; every text from a trace or plan is escaped."""

from collections.abc import Iterable, Sequence
from typing import Any

from numaplan.common import in_page

from ..analyzed import Analysis
from ..groups import thread_list
from ..memory.false_sharing import FalseSharing
from ..memory.regions import RegionUse
from .plan_view import PlanView
from .units import in_count, in_time, use_cells

MOST_REGIONS = 60
MOST_LINES = 20


def key_figures(analysis: Analysis, meta: dict[str, str], view: PlanView | None) -> str:
    """A row of the figures that matter most."""
    period = f"every {analysis.period:,}th access" if analysis.period > 1 else "every access"
    figures = [
        ("threads", str(len(analysis.threads)), ""),
        ("samples", in_count(analysis.samples), period if analysis.period else ""),
        _run_time(meta),
        ("confidence of the matrix", f"{analysis.confidence:.2f}", f"{in_count(analysis.events)} events"),
    ]
    if view is not None:
        predicted = view.content["predicted"]
        compact = predicted.get("baselines", {}).get("compact")
        against = f"compact {compact['remote_share']:.1%}" if compact else ""
        named = "communication between nodes"
        if predicted.get("apart"):
            figures.append((named, "not known", "processes were recorded apart"))
            named = "of that within processes"
        figures.append((named, f"{predicted['remote_share']:.1%}", against))
        if predicted.get("local_share", -1) >= 0:
            today = predicted.get("today") or {}
            known = "counted" if today.get("counted") else "expected"
            without = (
                f", {today['local_share']:.1%} without ({known})" if today.get("local_share", -1) >= 0 else ""
            )
            figures.append(
                ("local memory accesses", f"{predicted['local_share']:.1%}", f"with the plan{without}")
            )
    return "".join(
        f"<div><dt>{in_page(name)}</dt><dd>{in_page(value)}<small>{in_page(more)}</small></dd></div>"
        for name, value, more in figures
    )


def _run_time(meta: dict[str, str]) -> tuple[str, str, str]:
    duration = float(meta.get("duration_ns") or 0)
    if meta.get("clock") == "accesses":  # the emulation's clock: one a nanosecond
        return "run time in accesses", in_count(duration), f"recorded by {meta.get('backend', '?')}"
    return "run time", in_time(duration), f"recorded by {meta.get('backend', '?')}"


def sentence_list(sentences: Sequence[str], kind: str) -> str:
    """Sentences as a list of a class; nothing when there are none."""
    if not sentences:
        return ""
    return f'<ul class="{kind}">' + "".join(f"<li>{in_page(text)}</li>" for text in sentences) + "</ul>"


def regions_table(regions: Sequence[RegionUse], analysis: Analysis, view: PlanView | None) -> str:
    """The most used regions: size, sharers, who touched first, where the plan puts them."""
    if not regions:
        return ""
    head = ["region", "size", "samples", "threads", "writers", "first touched by", "most used by", "use"]
    if view is not None:
        head.append("home by the plan")
    rows = []
    for use in regions[:MOST_REGIONS]:
        title = use.title + (f" #{use.sequence}" if use.sequence > 0 else "")
        row = [title, *use_cells(use, analysis), _use_text(use)]
        if view is not None:
            row.append(view.home_text(use.region))
        rows.append(row)
    more = len(regions) - MOST_REGIONS
    about = "Data regions by samples; stacks and instructions are left out."
    if more > 0:
        about += f" {more} smaller regions are not shown."
    return _section("regions", "Memory", about, head, rows, {1, 2, 3, 4})


def _use_text(use: RegionUse) -> str:
    if use.sharers == 1:
        return "private"
    if use.read_mostly:
        return "read-mostly"
    return f"{use.shared_writes:.0%} write-shared"


def lines_table(lines: Sequence[FalseSharing], regions: Sequence[RegionUse], analysis: Analysis) -> str:
    """The lines that threads share although each keeps to bytes of its own; nothing when there are none."""
    if not lines:
        return ""
    titles = {use.region: use.title for use in regions}
    names = analysis.names
    rows = [
        [
            titles.get(line.region, "a region"),
            f"{max(line.offset, 0):,}",
            ", ".join(line.fields) or " and ".join(f"written at {code}" for code in line.code),
            str(line.lines),
            in_count(line.samples),
            in_count(line.writes),
            thread_list([names[thread] for thread in line.threads]),
        ]
        for line in lines[:MOST_LINES]
    ]
    about = "Each thread uses only its own bytes in them, yet they move between threads: add padding between."
    if len(lines) > MOST_LINES:
        about += f" {len(lines) - MOST_LINES} more entries are not shown."
    head = ["region", "offset in bytes", "used for", "lines", "samples", "writes", "threads"]
    return _section("false-sharing", "Falsely shared cache lines", about, head, rows, {1, 3, 4, 5})


def methods_table(view: PlanView | None) -> str:
    """The plan's costs against its baselines."""
    if view is None:
        return ""
    predicted: dict[str, Any] = view.content["predicted"]
    rows = [_method_row(f"plan ({view.content['method']})", predicted)]
    rows += [_method_row(name, costs) for name, costs in predicted.get("baselines", {}).items()]
    head = ["placement", "between nodes", "share", "hop cost", "load deviation", "largest node load"]
    about = (
        "Communication in events; deviation of the nodes' loads as a share of all load; "
        f"objective: {view.content['objective']}. Lower is better."
    )
    return _section("methods", "The plan against other placements", about, head, rows, {1, 2, 3, 4, 5})


def _method_row(name: str, costs: dict[str, Any]) -> list[str]:
    loads = [float(value) for value in costs.get("node_loads", ())]
    total = sum(loads)
    return [
        name,
        in_count(costs["remote_comm"]),
        f"{costs['remote_share']:.1%}",
        in_count(costs["hop_cost"]),
        f"{costs['load_std'] / total:.1%}" if total > 0 else "–",
        f"{max(loads) * len(loads) / total - 1:+.1%} of the mean" if total > 0 else "–",
    ]


def _section(
    name: str, title: str, about: str, head: Sequence[str], rows: Iterable[Sequence[str]], numbers: set[int]
) -> str:
    columns = "".join(
        f'<th scope="col"{_class(index, numbers)}>{in_page(text)}</th>' for index, text in enumerate(head)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td{_class(i, numbers)} data-label="{in_page(head[i])}">{in_page(text)}</td>'
            for i, text in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<section id="{name}"><h2>{in_page(title)}</h2><p class="about">{in_page(about)}</p>'
        f'<div class="scroll"><table><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>'
        "</section>"
    )


def _class(index: int, numbers: set[int]) -> str:
    return ' class="number"' if index in numbers else ""
