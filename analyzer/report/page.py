"""One self-contained HTML page about a trace: no network, light and dark, small enough to mail."""

import base64
import gzip
import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from shlex import join
from string import Template
from typing import Any

import msgspec
import numpy as np

from numaplan.common import in_page, version, write_document
from numaplan.profiler import Trace

from ..analysis import analyze_trace
from ..analyzed import Analysis
from ..memory.false_sharing import FalseSharing, false_sharing
from ..memory.page_counting import page_accesses
from ..memory.page_counts import PageCounts
from ..memory.regions import RegionUse, region_uses
from ..messages import RankMessages
from ..summary import placement_summary
from .advice import Advised, advice_section
from .figures.communication import communication_figures, node_figure
from .figures.cost import cost_figures
from .figures.loads import load_figures
from .figures.messages import message_figures, message_sentences
from .figures.methods import MethodCost, method_figure
from .figures.timeline import timeline_figure
from .machine_view import machine_section
from .plan_view import PlanView, first_touch_homes, node_accesses, planned_homes, program_mismatch, view_plan
from .plotly_script import plotly_script
from .tables import key_figures, lines_table, methods_table, regions_table, sentence_list

Figure = dict[str, Any]
Memory = tuple[PageCounts, Sequence[RegionUse], Sequence[FalseSharing]]
NONE = Advised()


def write_report(
    trace: Trace,
    output: str | os.PathLike[str],
    *,
    plan: dict[str, Any] | None = None,
    slice_ns: int = 0,
    methods: Sequence[MethodCost] = (),
    costs: Mapping[str, Any] | None = None,
    messages: RankMessages | None = None,
    analysis: Analysis | None = None,
    memory: Memory | None = None,
    advised: Advised = NONE,
) -> list[str]:
    """Write the page of a trace, and of a plan for it (the content of a checked plan.json).

    Returns what tells that the plan is not for this trace, which the page warns of too.
    methods: with a plan, the cost of each mapping method for the plan's objective; costs: the
    `predicted` of a plan, also of one that places nothing (for which `plan` is None); messages: between the
    ranks of the job that the trace is of, or is a rank of; analysis, memory: of the trace, where the caller
    has them; advised: what to do first.
    Raises UsageError when the trace has no samples, the plan fits none of its threads, or the file cannot
    be written.
    """
    analysis = analysis or analyze_trace(trace, slice_ns=slice_ns)
    pages, regions, lines = memory or _memory(trace)
    view = view_plan(plan, analysis.threads, regions) if plan is not None else None
    mismatch = _mismatch(trace, view)
    figures = [*message_figures(messages), *_figures(analysis, pages, view, methods, costs or {})]
    values = {
        "title": in_page(_command(trace)),
        "subtitle": in_page(_subtitle(trace, view)),
        "key_figures": key_figures(analysis, trace.meta, view),
        "advice": advice_section(advised),
        "summary": sentence_list(
            [*message_sentences(messages), *placement_summary(analysis, regions, lines, pages)], "summary"
        ),
        "warnings": sentence_list([*mismatch, *analysis.notes], "warnings"),
        "machine": machine_section(analysis, trace, view),
        "methods": methods_table(view),
        "regions": regions_table(regions, analysis, view) + lines_table(lines, regions, analysis),
        "version": in_page(version()),
        "style": _part("page.css"),
        "script": _part("page.js"),
        "figures": _packed(msgspec.json.encode(figures)),
        "plotly": _packed_plotly(frozenset(part["type"] for figure in figures for part in figure["data"])),
    }
    write_document(output, Template(_part("page.html")).substitute(values).encode())
    return mismatch


def _memory(trace: Trace) -> Memory:
    pages = page_accesses(trace)
    return pages, region_uses(trace, pages), false_sharing(trace)


def _mismatch(trace: Trace, view: PlanView | None) -> list[str]:
    return [*program_mismatch(view.content, trace), *view.mismatch] if view is not None else []


def _figures(
    analysis: Analysis,
    pages: PageCounts,
    view: PlanView | None,
    methods: Sequence[MethodCost],
    predicted: Mapping[str, Any],
) -> list[Figure]:
    names = analysis.names
    figures = cost_figures(predicted, places_nothing=view is None)
    counted = analysis.layers.get("counted") == 1
    figures += communication_figures(analysis.comm, analysis.standard_error, names, view, counted=counted)
    if view is not None:
        figures += _traffic_figures(analysis, pages, view)
    figures += [timeline_figure(analysis, names), *load_figures(analysis, names, view)]
    if view is not None and methods:
        figures.append(method_figure(methods, view.content["objective"]))
    return figures


def _traffic_figures(analysis: Analysis, pages: PageCounts, view: PlanView) -> list[Figure]:
    count = len(view.nodes)
    pair = {}
    for caption, place in (("compact", view.compact), ("plan", view.place)):
        seated = np.eye(count)[place]
        pair[caption] = seated.T @ analysis.comm @ seated / 2
    about = (
        "Communication between threads of the row's and the column's node; off the diagonal it crosses nodes."
    )
    figures = [node_figure("node-traffic", "Communication node to node", about, pair, view.nodes, "events")]
    if len(pages):
        homes = first_touch_homes(pages, view.compact)
        memory = {
            "compact": node_accesses(pages, view.compact, homes, count),
            "plan": node_accesses(pages, view.place, planned_homes(view, pages), count),
        }
        about = (
            "From threads on the row's node to memory on the column's: without a plan (compact, each page "
            "where it was touched first) and with the plan's homes. Off the diagonal it is remote."
        )
        title = "Memory accesses node to node"
        unit = "accesses" if pages.exact else "samples"
        figures.append(node_figure("memory-traffic", title, about, memory, view.nodes, unit))
    return figures


def _command(trace: Trace) -> str:
    text = join(trace.argv) or trace.path.name
    return text if len(text) <= 120 else text[:119] + "…"


def _subtitle(trace: Trace, view: PlanView | None) -> str:
    machine = trace.machine
    nodes = f"{len(machine.nodes)} node{'s' * (len(machine.nodes) != 1)}"
    text = f"recorded on {machine.name or 'a machine'} ({nodes}, {len(machine.cpus)} cpus)"
    if view is not None:
        target = view.content["machine"]
        text += f"; plan by {view.content['method']} for {target.get('name') or 'a machine'}"
        text += f" ({len(view.nodes)} nodes)"
    return text


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _packed(content: bytes) -> str:
    """gzip and base64: smaller, and nothing in it can end the element that contains it."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


@cache
def _packed_plotly(kinds: frozenset[str]) -> str:
    """What draws charts of these kinds."""
    return _packed(plotly_script(kinds).encode())
